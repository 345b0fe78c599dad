// fit's class_weight: factors of the losses of the examples of a class.
#pragma once

#include <cstdint>
#include <map>

#include "cohort/core/recording/host_constant.h"
#include "cohort/core/structure/structure.h"
#include "cohort/core/structure/tensor.h"

namespace cohort::internal {

// Thread safety: immutable.
class ClassWeightTable {
 public:
  // Errors: InvalidArgument (a class below 0; a weight that is not finite).
  explicit ClassWeightTable(const std::map<int64_t, double>& weights);
  // A batch (x, y) or (x, y, sample_weight), with the weights of its classes multiplied into its
  // sample weights. y holds a class by number, or by ones along its last dimension.
  // Errors: InvalidArgument (no y; several outputs; sample weights that do not fit those of the
  // classes).
  Structure apply(const Structure& data) const;

 private:
  static Tensor weighed_by(const Tensor& weights, const Structure& sample_weight);

  HostConstant classes_;  // [n] int64, ascending
  HostConstant weights_;  // [n] float32, theirs; of all others it is 1
};

}  // namespace cohort::internal
