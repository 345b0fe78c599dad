// Metrics: numbers that are accumulated over the steps and replicas of a run.
//
//   metrics::Mean test_loss({.name = "test_loss"});
//   test_loss.update_state(per_example_losses);   // in a step: this replica's own, no waiting
//   std::cout << test_loss.result();              // over all replicas: 0.25
//   double loss = test_loss.result().item<double>();
//   test_loss.reset_state();
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/handle.h"
#include "cohort/core/structure/tensor.h"
#include "cohort/distribute/variables/variable.h"
#include "cohort/keras/base/config.h"
#include "cohort/keras/base/list.h"
#include "cohort/keras/metrics/metric_result.h"

namespace cohort {
namespace internal {
class MetricState;
struct MetricCopies;
}  // namespace internal
namespace train {
class Trackable;
}

namespace keras::metrics {

struct MetricOptions {
  std::string name = "";  // empty: the metric's own
};
// A name alone: Mean("loss") is Mean({.name = "loss"}).
template <class T>
concept NameLike = std::convertible_to<const T&, std::string_view>;

// A handle: copies name the same metric. Its state is created at its first use, under the strategy
// of the scope in which the metric was made, or else the current one.
// Thread safety: update_state from all replicas of a step at once; the rest from one thread while
// no step runs, or where stated collectively in a step.
class COHORT_API Metric {
 public:
  const std::string& name() const;

  // Across replicas and outside of steps: the value over all replicas. In a step COLLECTIVE: every
  // replica gets that value. 0 without data. Shape: [], or as the metric says.
  MetricResult result() const;
  // Across replicas or outside of steps. Errors: FailedPrecondition (in a step).
  void reset_state() const;
  void reset_states() const { reset_state(); }
  // Adds what `metrics` hold, over all replicas, to this one; they keep it. Of several workers each
  // calls it, with the same metrics. Across replicas or outside of steps.
  // Errors: FailedPrecondition (in a step), InvalidArgument (a metric of other variables).
  void merge_state(const std::vector<Metric>& metrics) const;
  // ON_READ variables that are summed over replicas. Where a metric takes its shape from the first
  // predictions, none before them.
  List<Variable> variables() const;
  // For a train::Checkpoint. Make the metric under the scope of the strategy that runs the steps:
  // saving or restoring before its first use makes its variables.
  std::shared_ptr<train::Trackable> trackable() const;
  // Keras's form; nullopt for a function of the program.
  std::optional<Config> serialize() const;

 protected:
  explicit Metric(std::shared_ptr<internal::MetricState> state) : state_(std::move(state)) {}
  internal::MetricState& state() const { return *state_; }
  // Says how the metric was made, in Keras's names; the name goes without saying.
  void describe(std::string_view class_name, const Config& config = Config()) const;

 private:
  friend struct internal::MetricCopies;
  // This handle gets a state of its own, which is made as the one that it shared.
  void part_from_others();

  internal::Handle<internal::MetricState, "Metric"> state_;
};

}  // namespace keras::metrics

namespace internal {
struct MetricCopies {
  // A metric that is made as `metric` was, with nothing in it.
  template <std::derived_from<keras::metrics::Metric> M>
  static M another(M metric) {
    static_cast<keras::metrics::Metric&>(metric).part_from_others();
    return metric;
  }
};
}  // namespace internal
}  // namespace cohort
