#include "cohort/data/functions/probed_spec.h"

#include <utility>
#include <vector>

namespace cohort::internal {

StructureSpec generalize(const Structure& result, const StructureSpec& input_spec,
                         const Structure& input) {
  std::vector<std::pair<size_t, int64_t>> unknown;  // dimension, size in this element
  const std::vector<Leaf> leaves = input.flatten();
  const std::vector<TensorSpec> specs = input_spec.flatten();
  for (size_t i = 0; i < specs.size() && i < leaves.size(); ++i) {
    if (!specs[i].shape()) continue;
    const std::vector<int64_t> shape = leaves[i].sizes();
    for (size_t d = 0; d < shape.size() && d < specs[i].shape()->size(); ++d) {
      if ((*specs[i].shape())[d] == kUnknownDim) unknown.emplace_back(d, shape[d]);
    }
  }
  return StructureSpec::of(result).map([&](const TensorSpec& spec) {
    std::vector<int64_t> shape = *spec.shape();
    for (const auto& [d, size] : unknown) {
      if (d < shape.size() && shape[d] == size) shape[d] = kUnknownDim;
    }
    return spec.is_string() ? TensorSpec::strings(shape) : TensorSpec(shape, spec.dtype());
  });
}

}  // namespace cohort::internal
