// Sorts strings and integers into a fixed number of bins, without a vocabulary.
//
//   layers::Hashing city(/*num_bins=*/1000);
//   city(StringTensor({"Bern", "Graz"}));                     // int64 [2], in [0, 1000)
//   layers::Hashing secret(1000, {.salt = {133, 137}});       // bins that nobody can foretell
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "cohort/core/export.h"
#include "cohort/keras/layers/base/layer_handle.h"

namespace cohort::keras::layers {

// The key of a hash: two numbers, one that stands for both, or none. A value.
class HashSalt {
 public:
  HashSalt() = default;
  HashSalt(int64_t both) : HashSalt(both, both) {}
  HashSalt(int64_t first, int64_t second) : numbers_({first, second}) {}

  const std::optional<std::pair<int64_t, int64_t>>& numbers() const { return numbers_; }

 private:
  std::optional<std::pair<int64_t, int64_t>> numbers_;
};

struct HashingOptions {
  // A string or an integer that goes to bin 0, which nothing else then does; missing: none.
  std::variant<std::monostate, std::string, int64_t> mask_value = {};
  // The key of SipHash. Missing: the hash is FarmHash, which has none.
  HashSalt salt = {};
  // "int": a bin for each value. "one_hot": a vector for each, [n] and [n, 1] -> [n, num_bins].
  // "multi_hot", "count": a vector for each row, [n, m] -> [n, num_bins]: which bins are there; how
  // often.
  std::string output_mode = "int";
  // The output's dtype; missing: int64 with "int", else backend::floatx().
  std::optional<DType> dtype = std::nullopt;
  std::string name = "";
};

// Shapes: strings or integers [..] -> [..] with output_mode "int"; see there for the others.
// RaggedTensor -> RaggedTensor of the same rows; with "multi_hot" and "count" a vector a row. An
// integer goes where its decimal digits go. The bins are those of Keras 2.15.
// Errors (call): InvalidArgument (numbers that are no integers; a mask_value of the other kind).
class COHORT_API Hashing : public LayerHandle {
 public:
  // Errors: InvalidArgument (num_bins below 1, an unknown output_mode, a dtype that does not fit).
  explicit Hashing(int64_t num_bins, HashingOptions options = {});
};

}  // namespace cohort::keras::layers
