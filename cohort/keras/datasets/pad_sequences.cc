#include "cohort/keras/datasets/pad_sequences.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "cohort/core/error.h"
#include "cohort/core/libtorch_error.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

using keras::utils::PadSequencesOptions;

template <class... Parts>
[[noreturn]] void refuse(const Parts&... parts) {
  throw InvalidArgumentError(str("pad_sequences: ", parts...));
}

bool is_pre(const char* option, const std::string& value) {
  if (value != "pre" && value != "post") {
    refuse(option, " is ", quoted(value), "; it is \"pre\" or \"post\"");
  }
  return value == "pre";
}

// The shape of an element of the first sequence that has some.
std::vector<int64_t> element_shape(const std::vector<Tensor>& sequences) {
  std::vector<int64_t> shape;
  bool known = false;
  for (size_t i = 0; i < sequences.size(); ++i) {
    const Tensor& sequence = sequences[i];
    if (!sequence.defined() || sequence.dim() == 0) {
      refuse("sequence ", i, " is ", describe(sequence), "; it needs a dimension of steps");
    }
    if (sequence.size(0) == 0) continue;
    const std::vector<int64_t> own = sequence.sizes().slice(1).vec();
    if (known && own != shape) {
      refuse("sequence ", i, " has elements of shape ", shape_str(own), ", but those before it ",
             shape_str(shape));
    }
    shape = own;
    known = true;
  }
  return shape;
}

struct Range {
  double least;
  double greatest;

  // Not of NaN.
  bool holds(double value) const { return value >= least && value <= greatest; }
};

// The numbers that an integer dtype holds; nullopt of others, into which all are rounded.
std::optional<Range> range_of(DType dtype) {
  switch (dtype) {
    case DType::Byte:
      return Range{0, 255};
    case DType::Char:
      return Range{-128, 127};
    case DType::Short:
      return Range{-32768, 32767};
    case DType::Int:
      return Range{-2147483648.0, 2147483647.0};
    case DType::Long:
      return Range{-9223372036854775808.0, 9223372036854774784.0};
    default:
      return std::nullopt;
  }
}

void check_value(const PadSequencesOptions& options) {
  const std::optional<Range> range = options.dtype == DType::Half && std::isfinite(options.value)
                                         ? Range{-65504, 65504}
                                         : range_of(options.dtype);
  if (!range || range->holds(options.value)) return;
  refuse("value is ", options.value, ", which ", dtype_name(options.dtype), " does not hold");
}

void check_elements(size_t number, const Tensor& sequence, DType dtype) {
  const std::optional<Range> range = range_of(dtype);
  if (!range || sequence.numel() == 0 || sequence.scalar_type() == dtype) return;
  for (const double value : {sequence.min().item<double>(), sequence.max().item<double>()}) {
    if (range->holds(value)) continue;
    refuse("sequence ", number, " has ", value, ", which ", dtype_name(dtype), " does not hold");
  }
}

int64_t length_of(const std::vector<Tensor>& sequences, const std::optional<int64_t>& maxlen) {
  if (maxlen && *maxlen < 1) refuse("maxlen is ", *maxlen, "; it must be at least 1");
  if (maxlen) return *maxlen;
  if (sequences.empty()) refuse("without sequences maxlen must be given");
  int64_t longest = 0;
  for (const Tensor& sequence : sequences) longest = std::max(longest, sequence.size(0));
  return longest;
}

}  // namespace

Tensor pad_tensors(const std::vector<Tensor>& sequences, const PadSequencesOptions& options) {
  const bool pad_before = is_pre("padding", options.padding);
  const bool cut_before = is_pre("truncating", options.truncating);
  check_value(options);
  std::vector<int64_t> shape = element_shape(sequences);
  const int64_t length = length_of(sequences, options.maxlen);
  shape.insert(shape.begin(), {std::ssize(sequences), length});
  return with_typed_errors("pad_sequences", [&] {
    Tensor padded = at::full(shape, options.value, at::dtype(options.dtype));
    for (size_t i = 0; i < sequences.size(); ++i) {
      Tensor sequence = sequences[i].detach();
      const int64_t size = std::min(sequence.size(0), length);
      if (size == 0) continue;
      sequence = sequence.narrow(0, cut_before ? sequence.size(0) - size : 0, size);
      check_elements(i, sequence, options.dtype);
      padded.select(0, static_cast<int64_t>(i))
          .narrow(0, pad_before ? length - size : 0, size)
          .copy_(sequence);
    }
    return padded;
  });
}

std::vector<Tensor> rows_to_pad(const RaggedTensor& sequences) {
  singly_ragged(sequences, "pad_sequences");
  std::vector<Tensor> rows;
  for (int64_t i = 0; i < sequences.nrows(); ++i) rows.push_back(sequences[i].tensor());
  return rows;
}

}  // namespace cohort::internal

namespace cohort::keras::utils {

Tensor pad_sequences(const std::vector<std::vector<int64_t>>& sequences,
                     const PadSequencesOptions& options) {
  std::vector<Tensor> tensors;
  for (const auto& sequence : sequences) {
    tensors.push_back(at::empty({std::ssize(sequence)}, int64));
    std::copy(sequence.begin(), sequence.end(), tensors.back().data_ptr<int64_t>());
  }
  return internal::pad_tensors(tensors, options);
}

}  // namespace cohort::keras::utils
