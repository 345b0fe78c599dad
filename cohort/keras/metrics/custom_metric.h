// A metric of your own: a few sums over all examples, and what is computed from them.
//
//   metrics::CustomMetric f1({
//       .name = "f1",
//       .sums = {"hits", "predicted", "actual"},
//       .update = [](const Tensor& y_true, const Tensor& y_pred, const Tensor&) {
//         const Tensor chosen = tf::cast(y_pred > 0.5, tf::float32);
//         return std::vector<Tensor>{tf::reduce_sum(chosen * y_true), tf::reduce_sum(chosen),
//                                    tf::reduce_sum(y_true)};
//       },
//       .result = [](const std::vector<Tensor>& sums) {
//         return 2 * sums[0] / (sums[1] + sums[2] + 1e-7);
//       }});
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/keras/metrics/prediction_metric.h"

namespace cohort::keras::metrics {

struct CustomMetricOptions {
  std::string name = "custom_metric";
  // What is summed over steps and replicas, from 0 on: names of variables, also in checkpoints.
  std::vector<std::string> sums = {};
  // What a batch adds to each sum, in their order. sample_weight is undefined if none was given. A
  // batch has at least one row.
  std::function<std::vector<Tensor>(const Tensor& y_true, const Tensor& y_pred,
                                    const Tensor& sample_weight)>
      update = {};
  // The metric, of the sums over all replicas. Also called while all of them are 0.
  std::function<Tensor(const std::vector<Tensor>& sums)> result = {};
  std::vector<int64_t> shape = {};  // of each sum; {n} for one of each of n classes, say
};

// Both functions are called by several threads at once. A class of your own derives from this one
// and passes the options.
class COHORT_API CustomMetric : public PredictionMetric {
 public:
  // Errors: InvalidArgument (no sums, a name twice, a function missing); of update_state also
  // InvalidArgument (`update` returned another number of tensors, or one of another shape).
  explicit CustomMetric(const CustomMetricOptions& options);
};

}  // namespace cohort::keras::metrics
