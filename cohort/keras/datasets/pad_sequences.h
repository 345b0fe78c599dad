// Sequences of different lengths as one tensor, as keras.utils.pad_sequences.
//
//   keras::utils::pad_sequences({{1}, {2, 3}, {4, 5, 6}});  // 0 0 1 | 0 2 3 | 4 5 6
//   keras::utils::pad_sequences({{1}, {2, 3}}, {.maxlen = 3, .padding = "post"});  // 1 0 0 | 2 3 0
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/structure/ragged_tensor.h"
#include "cohort/core/structure/tensor.h"

namespace cohort::keras::utils {

struct PadSequencesOptions {
  // The length of all rows. Default: that of the longest sequence.
  std::optional<int64_t> maxlen = {};
  DType dtype = int32;
  std::string padding = "pre";     // where `value` stands: "pre", before a sequence, or "post"
  std::string truncating = "pre";  // where a longer sequence loses elements: "pre" or "post"
  double value = 0;
};

}  // namespace cohort::keras::utils

namespace cohort::internal {
COHORT_API Tensor pad_tensors(const std::vector<Tensor>& sequences,
                              const keras::utils::PadSequencesOptions& options);
COHORT_API std::vector<Tensor> rows_to_pad(const RaggedTensor& sequences);
}  // namespace cohort::internal

namespace cohort::keras::utils {

// Shapes: sequences [n_i, ..], equal but for dimension 0 (an empty one may have any) ->
// [sequences, maxlen, ..].
// Errors: InvalidArgument (an option; no sequences and no maxlen; a scalar; other dimensions
// differ: names the sequence; a value that the dtype does not hold).
COHORT_API Tensor pad_sequences(const std::vector<std::vector<int64_t>>& sequences,
                                const PadSequencesOptions& options = {});
// Templates, so that lists in braces are lists of numbers.
template <std::same_as<Tensor> Sequence>
Tensor pad_sequences(const std::vector<Sequence>& sequences,
                     const PadSequencesOptions& options = {}) {
  return internal::pad_tensors(sequences, options);
}
template <std::same_as<RaggedTensor> Ragged>
Tensor pad_sequences(const Ragged& sequences, const PadSequencesOptions& options = {}) {
  return internal::pad_tensors(internal::rows_to_pad(sequences), options);
}

}  // namespace cohort::keras::utils

namespace cohort::keras::preprocessing::sequence {
using utils::pad_sequences;  // its name in older programs
}
