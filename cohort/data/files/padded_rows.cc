#include "cohort/data/files/padded_rows.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

#include "cohort/core/error.h"
#include "cohort/core/structure/spec.h"

namespace cohort::internal {
namespace {

void check_size(const std::vector<int64_t>& shape, int64_t value_bytes) {
  int64_t bytes = value_bytes;
  for (const int64_t size : shape) {
    if (!__builtin_mul_overflow(bytes, size, &bytes) &&
        bytes <= static_cast<int64_t>(kMostPaddedBytes)) {
      continue;
    }
    throw ResourceExhaustedError(str("has up to ", shape[1], " rows in a batch of ", shape[0],
                                     ": padded they would take more than ", kMostPaddedBytes,
                                     " bytes; parse smaller batches"));
  }
}

StringTensor pad_strings(const StringTensor& values, const std::vector<int64_t>& lengths,
                         const std::vector<int64_t>& shape, std::string_view padding) {
  struct Memory {
    StringTensor values;
    std::string padding;
    std::vector<std::string_view> views;
  };
  const auto memory = std::make_shared<Memory>(Memory{values, std::string(padding), {}});
  int64_t row_values = 1, count = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    count *= shape[d];
    if (d > 1) row_values *= shape[d];
  }
  memory->views.assign(static_cast<size_t>(count), memory->padding);
  const std::string_view* from = values.data();
  auto to = memory->views.begin();
  for (const int64_t length : lengths) {
    std::copy_n(from, length * row_values, to);
    from += length * row_values;
    to += shape[1] * row_values;
  }
  return StringTensor::over(memory, memory->views.data(), shape);
}

}  // namespace

Leaf pad_rows(const Leaf& values, const std::vector<int64_t>& lengths, const Leaf& padding) {
  std::vector<int64_t> shape = values.sizes();
  shape[0] = lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
  shape.insert(shape.begin(), static_cast<int64_t>(lengths.size()));
  check_size(shape, values.is_strings() ? static_cast<int64_t>(sizeof(std::string_view))
                                        : static_cast<int64_t>(values.tensor().element_size()));
  if (values.is_strings()) {
    return pad_strings(values.strings(), lengths, shape, padding.strings().item());
  }
  Tensor padded = at::empty(shape, values.tensor().options());
  padded.fill_(padding.tensor());
  int64_t first = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    padded.select(0, static_cast<int64_t>(i))
        .narrow(0, 0, lengths[i])
        .copy_(values.tensor().narrow(0, first, lengths[i]));
    first += lengths[i];
  }
  return padded;
}

Leaf padding_of(const io::FixedLenSequenceFeature& feature) {
  const auto& given = feature.options.default_value;
  if (!given) {
    if (!feature.dtype) return StringTensor::scalar("");
    return at::zeros({}, *feature.dtype);
  }
  const bool fits = feature.dtype
                        ? given->is_tensor() && given->tensor().scalar_type() == *feature.dtype
                        : given->is_strings();
  if (fits && given->dim() == 0) return *given;
  throw InvalidArgumentError(
      str("has a default value that is no scalar of its dtype: ", TensorSpec::of(*given)));
}

Leaf zero_like(const Leaf& leaf) {
  if (leaf.is_strings()) return StringTensor::scalar("");
  return at::zeros({}, leaf.tensor().scalar_type());
}

}  // namespace cohort::internal
