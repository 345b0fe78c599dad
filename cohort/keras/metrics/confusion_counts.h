// Counts right and wrong predictions at many thresholds at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "cohort/core/recording/host_constant.h"
#include "cohort/core/structure/tensor.h"

namespace cohort::internal {

// Thresholds in the program's order. Thread safety: immutable.
class Thresholds {
 public:
  // dtype: that in which predictions are compared with them.
  Thresholds(std::vector<double> values, DType dtype);

  int64_t size() const { return sorted_.on_host().numel(); }
  // For each prediction how many thresholds it is above; of NaN 0. Shape: predictions'.
  Tensor count_below(const Tensor& predictions) const;
  // Brings rows that belong to ascending thresholds into the program's order.
  Tensor in_program_order(const Tensor& rows) const;

 private:
  HostConstant sorted_;
  HostConstant places_;  // of the program's thresholds among the sorted ones; undefined: the same
};
// Errors: InvalidArgument (none; one outside [0, 1]; names `metric`).
void check_thresholds(std::string_view metric, const std::vector<double>& thresholds);

// Bounds the number of thresholds or classes: more of them come from a damaged configuration.
// Errors: InvalidArgument.
void check_not_too_many(std::string_view metric, std::string_view option, int64_t count);

struct ConfusionData {
  Tensor labels;
  Tensor predictions;
  Tensor weights;  // undefined: 1
};
struct ConfusionSelection {
  std::optional<int64_t> top_k = std::nullopt;
  std::optional<int64_t> class_id = std::nullopt;
};
// Data of one floating dtype and one shape, the predictions that do not count at -1e10.
// Errors: InvalidArgument (shapes; an index outside of the last dimension; names `metric`).
ConfusionData match_confusion(const ConfusionData& data, const ConfusionSelection& selection,
                              DType dtype, const char* metric);
inline constexpr double kNeverPositive = -1e10;

// Weighted numbers of elements. Shape: [thresholds], or with columns [thresholds, columns].
struct ConfusionCounts {
  Tensor true_positives;
  Tensor true_negatives;
  Tensor false_positives;
  Tensor false_negatives;
};
// `data` as match_confusion gives it. columns: 0, or the size of the last dimension, which then
// is counted apart.
ConfusionCounts count_confusion(const ConfusionData& data, const Thresholds& thresholds,
                                int64_t columns = 0);

// a / b, and 0 where b is 0.
Tensor divide_no_nan(const Tensor& a, const Tensor& b);

}  // namespace cohort::internal
