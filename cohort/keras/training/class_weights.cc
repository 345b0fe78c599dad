#include "cohort/keras/training/class_weights.h"

#include <ATen/ops/searchsorted.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>

#include <cmath>
#include <vector>

#include "cohort/keras/base/describe_leaves.h"
#include "cohort/keras/base/weighting.h"
#include "cohort/keras/losses/crossentropy.h"
#include "cohort/keras/model/data.h"

namespace cohort::internal {

ClassWeightTable::ClassWeightTable(const std::map<int64_t, double>& weights) {
  std::vector<int64_t> numbers;
  std::vector<double> factors;
  for (const auto& [number, weight] : weights) {
    if (number < 0 || !std::isfinite(weight)) {
      throw InvalidArgumentError(str("class_weight has ", weight, " for class ", number,
                                     "; classes count from 0, and weights are finite numbers"));
    }
    numbers.push_back(number);
    factors.push_back(weight);
  }
  classes_ = HostConstant(at::tensor(numbers, at::dtype(at::kLong)));
  weights_ = HostConstant(at::tensor(factors, at::dtype(at::kFloat)));
}

Structure ClassWeightTable::apply(const Structure& data) const {
  const keras::Batch batch = keras::unpack_x_y_sample_weight(data);
  if (!batch.y.is_leaf()) {
    throw InvalidArgumentError(
        str("class_weight needs the labels of one output, but the labels are ", batch.y,
            "; give sample weights instead"));
  }
  if (batch.y.leaf().is_strings()) {
    throw InvalidArgumentError(
        str("class_weight needs labels that are numbers of classes, but they "
            "are ",
            describe_leaves(batch.y), "; a StringLookup layer makes numbers of strings"));
  }
  Tensor classes = batch.y.tensor();
  check_real_labels(classes, "class_weight");
  if (classes.dim() > 1 && classes.size(-1) > 1) classes = classes.argmax(-1);
  if (classes.dim() > 1) classes = classes.squeeze(-1);
  classes = classes.to(at::kLong);
  const Tensor known = classes_.on(classes.device());
  const Tensor place = at::searchsorted(known, classes).clamp_max(known.size(0) - 1);
  Tensor weights = at::where(known.index({place}) == classes,
                             weights_.on(classes.device()).index({place}), 1.0f);
  if (batch.has_sample_weight()) weights = weighed_by(weights, batch.sample_weight);
  return tuple(batch.x, batch.y, weights);
}

Tensor ClassWeightTable::weighed_by(const Tensor& weights, const Structure& sample_weight) {
  if (!sample_weight.is_leaf()) {
    throw InvalidArgumentError(str("class_weight needs one tensor of sample weights, but they are ",
                                   sample_weight, "; give the product of both instead"));
  }
  // One of the two may be for whole examples where the other is for parts of them.
  Tensor own = weights;
  Tensor given = sample_weight.tensor();
  squeeze_last_of_larger(own, given);
  while (own.dim() < given.dim()) own = own.unsqueeze(-1);
  while (given.dim() < own.dim() && given.dim() > 0) given = given.unsqueeze(-1);
  if (!broadcasts_to(own.sizes(), given.sizes()) && !broadcasts_to(given.sizes(), own.sizes())) {
    throw InvalidArgumentError(str("class_weight gives weights of shape ",
                                   shape_str(weights.sizes()), ", which sample_weight of shape ",
                                   shape_str(sample_weight.tensor().sizes()), " does not fit"));
  }
  return own * given;  // also of whole numbers
}

}  // namespace cohort::internal
