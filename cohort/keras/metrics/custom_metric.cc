#include "cohort/keras/metrics/custom_metric.h"

#include <algorithm>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/keras/metrics/metric_state.h"

namespace cohort::keras::metrics {
namespace {

using internal::quoted;
using internal::str;

std::shared_ptr<internal::MetricState> make_state(const CustomMetricOptions& options) {
  const auto fail = [&](const auto&... what) {
    throw InvalidArgumentError(str("CustomMetric ", quoted(options.name), ": ", what...));
  };
  if (options.sums.empty()) fail("sums is empty; name at least one");
  for (auto name = options.sums.begin(); name != options.sums.end(); ++name) {
    if (std::find(options.sums.begin(), name, *name) != name) {
      fail("two sums are called ", quoted(*name));
    }
  }
  if (!options.update) fail("update is missing: the function of labels and predictions");
  if (!options.result) fail("result is missing: the function of the sums");
  return std::make_shared<internal::MetricState>(
      internal::MetricState::Options{options.name, options.sums, options.result, options.shape});
}

}  // namespace

CustomMetric::CustomMetric(const CustomMetricOptions& options)
    : PredictionMetric(make_state(options), [update = options.update, sums = options.sums,
                                             shape = options.shape](
                                                internal::MetricState& state, const Tensor& y_true,
                                                const Tensor& y_pred, const Tensor& sample_weight) {
        std::vector<Tensor> parts = update(y_true, y_pred, sample_weight);
        if (parts.size() != sums.size()) {
          throw InvalidArgumentError(str("metric ", quoted(state.name()), ": update returned ",
                                         parts.size(), " tensors for ", sums.size(), " sums"));
        }
        for (size_t i = 0; i < parts.size(); ++i) {
          if (parts[i].defined() && parts[i].sizes() == shape) {
            // Turns -0 into 0: sums of -0 look as if nothing had been added.
            if (!internal::number_on_host(parts[i])) parts[i] = parts[i] + 0;
            continue;
          }
          throw InvalidArgumentError(str("metric ", quoted(state.name()), ": update returned ",
                                         internal::describe(parts[i]), " for the sum ",
                                         quoted(sums[i]), ", which has the shape ",
                                         internal::shape_str(shape)));
        }
        state.add(parts);
      }) {}

}  // namespace cohort::keras::metrics
