#include "cohort/keras/training/class_weights.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <cmath>

#include "cohort/keras/training/data.h"

namespace cohort::internal {

ClassWeightTable::ClassWeightTable(const std::map<int64_t, double>& weights) {
  weights_ = at::ones({std::max<int64_t>(weights.rbegin()->first, 0) + 2}, at::dtype(at::kFloat));
  for (const auto& [number, weight] : weights) {
    if (number < 0 || !std::isfinite(weight)) {
      throw InvalidArgumentError(str("class_weight has ", weight, " for class ", number,
                                     "; classes count from 0, and weights are finite numbers"));
    }
    weights_[number].fill_(weight);
  }
}

Structure ClassWeightTable::apply(const Structure& data) const {
  const keras::Batch batch = keras::unpack_x_y_sample_weight(data);
  if (!batch.y.is_leaf()) {
    throw InvalidArgumentError(
        str("class_weight needs the labels of one output, but the labels are ", batch.y,
            "; give sample weights instead"));
  }
  Tensor classes = batch.y.tensor();
  if (classes.dim() > 1 && classes.size(-1) > 1) classes = classes.argmax(-1);
  if (classes.dim() > 1) classes = classes.squeeze(-1);
  classes = classes.to(at::kLong);
  const int64_t others = weights_.size(0) - 1;
  classes = at::where((classes >= 0).logical_and(classes < others), classes, others);
  Tensor weights = weights_.to(classes.device()).index({classes});
  if (batch.has_sample_weight()) {
    const Tensor& given = batch.sample_weight.tensor();
    weights = weights.to(given.scalar_type()).reshape_as(given) * given;
  }
  return tuple(batch.x, batch.y, weights);
}

}  // namespace cohort::internal
