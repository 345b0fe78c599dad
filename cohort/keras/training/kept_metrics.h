// Calls within the callbacks of fit and evaluate, on the same model: they begin its metrics anew.
#pragma once

#include <utility>
#include <vector>

#include "cohort/keras/metrics/metric_state.h"
#include "cohort/keras/training/training.h"

namespace cohort::internal {

// The sums of a model's metrics, as they are when this is made. Between steps; not COLLECTIVE.
class KeptMetrics {
 public:
  KeptMetrics(const Training& training, const keras::Model& model);
  // Metrics that were made since then have none.
  void put_back() const;

 private:
  const Training& training_;
  const keras::Model& model_;
  std::vector<std::pair<NamedMetric, MetricState::Sums>> kept_;
};

// What `call` returns. If it runs within another call that trains or evaluates this model, that one
// goes on with the sums that its metrics had. Within the TrainingTurn of `call`.
template <class Call>
auto keeping_outer_metrics(const Training& training, const keras::Model& model, const Call& call) {
  if (!training.turns.are_nested()) return call();
  const KeptMetrics outer(training, model);
  try {
    auto result = call();
    outer.put_back();
    return result;
  } catch (...) {
    outer.put_back();  // the callback may catch it
    throw;
  }
}

}  // namespace cohort::internal
