#include "cohort/keras/training/compile_checks.h"

#include <map>
#include <set>
#include <string>

#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

// Also of outputs that are still unknown. Errors: InvalidArgument (an unknown name).
void check_names_of(const keras::CompileOptions& options) {
  const auto& losses = options.loss;
  if (losses.one()) losses.one()->loss();
  for (const keras::LossArgument& loss : losses.list()) loss.loss();
  for (const auto& [output, loss] : losses.named()) loss.loss();
  for (const keras::MetricList* metrics : {&options.metrics, &options.weighted_metrics}) {
    for (const keras::MetricArgument& metric : metrics->list()) metric.check();
    for (const auto& [output, list] : metrics->named()) {
      for (const keras::MetricArgument& metric : list) metric.check();
    }
  }
}

// Errors: InvalidArgument (one object in two places, which would mix their numbers; an output named
// twice).
void check_each_once(const keras::CompileOptions& options) {
  std::map<const train::Trackable*, std::string> places;
  const auto add = [&](const keras::MetricArgument& metric, const std::string& place) {
    if (!metric.is_object()) return;
    const auto [first, is_new] = places.emplace(metric.make().metric.trackable().get(), place);
    if (is_new) return;
    throw InvalidArgumentError(
        str("compile got the metric ", quoted(metric.name()), " as one object ",
            first->second == place ? str("twice in ", place)
                                   : str("in ", first->second, " and in ", place),
            ", which would mix their numbers; make an object for each"));
  };
  const auto check_outputs = [](const auto& named, const char* field) {
    std::set<std::string> outputs;
    for (const auto& [output, value] : named) {
      if (outputs.insert(output).second) continue;
      throw InvalidArgumentError(str("compile got ", field, " twice for output ", quoted(output),
                                     "; name each output once"));
    }
  };
  check_outputs(options.loss.named(), "a loss");
  check_outputs(options.loss_weights.named(), "a loss weight");
  const auto check = [&](const keras::MetricList& metrics, const char* field) {
    check_outputs(metrics.named(), field);
    for (const keras::MetricArgument& metric : metrics.list()) add(metric, field);
    for (const auto& [output, list] : metrics.named()) {
      for (const keras::MetricArgument& metric : list) {
        add(metric, str(field, " of output ", quoted(output)));
      }
    }
  };
  check(options.metrics, "metrics");
  check(options.weighted_metrics, "weighted_metrics");
}

}  // namespace

void check_compile_options(const keras::CompileOptions& options) {
  check_names_of(options);
  check_each_once(options);
}

}  // namespace cohort::internal
