#include "cohort/distribute/input/dummy_batch.h"

#include <ATen/ops/zeros.h>

#include <algorithm>

#include "cohort/data/iteration/row_specs.h"

namespace cohort::internal {

Structure dummy_batch(const StructureSpec& spec) {
  return empty_rows(spec, [](const TensorSpec& leaf) -> Leaf {
    std::vector<int64_t> shape = leaf.shape().value_or(std::vector<int64_t>{0});
    std::replace(shape.begin(), shape.end(), kUnknownDim, int64_t{0});
    if (!shape.empty()) shape[0] = 0;
    if (!leaf.is_string()) return at::zeros(shape, leaf.dtype());
    if (shape.empty()) return StringTensor::scalar("");
    return StringTensor(std::vector<std::string>(), std::move(shape));
  });
}

}  // namespace cohort::internal
