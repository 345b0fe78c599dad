// What compile makes of its options: the losses and metrics of each output.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cohort/keras/base/policy.h"
#include "cohort/keras/losses/loss.h"
#include "cohort/keras/metrics/metric.h"
#include "cohort/keras/metrics/reported_metrics.h"
#include "cohort/keras/model/compile_options.h"
#include "cohort/keras/model/data.h"

namespace cohort::internal {

// The mean of losses over rows. Thread safety: as Metric.
class LossMean final : public keras::metrics::Metric {
 public:
  explicit LossMean(const std::string& name);
  // The mean loss of so many rows.
  void add(const Tensor& mean, int64_t rows) const;
};

// Thread safety: compute_loss and update_metrics from all replicas of a step at once.
class CompiledModel {
 public:
  using OutputNames = std::function<std::vector<std::string>(size_t count)>;

  // policy, output_names: the model's. An optimizer gets a loss scale if the model computes in
  // float16.
  // Errors: InvalidArgument (steps_per_execution below 1; an unknown name of an optimizer, loss or
  // metric, with the nearest known one; one metric object in two places; an output named twice; two
  // metrics of one name).
  CompiledModel(const keras::CompileOptions& options, const keras::mixed_precision::Policy& policy,
                OutputNames output_names);

  const keras::CompileOptions& options() const { return options_; }
  const keras::optimizers::Optimizer& optimizer() const { return optimizer_; }
  int64_t steps_per_execution() const { return steps_per_execution_; }

  // In a replica; see Model::compute_loss. `penalties` of the layers.
  // Errors: InvalidArgument (labels are missing; they do not fit the outputs, by number or name).
  Tensor compute_loss(const Structure& y, const Structure& y_pred, const Structure& sample_weight,
                      const std::vector<Tensor>& penalties);
  void update_metrics(const Structure& y, const Structure& y_pred, const Structure& sample_weight);

  // Makes what belongs to outputs of this form; the first call decides it for good.
  void prepare(const Structure& y_pred) { bind(y_pred); }

  // What is made later appears to `reported` as long as it lives. Between steps.
  void report_to(const std::shared_ptr<ReportedMetrics>& reported) { reported_ = reported; }

  // "loss", the losses of the outputs where there are several, the metrics.
  std::vector<NamedMetric> metrics() const;

 private:
  struct LossPart {
    keras::losses::Loss each;  // without a reduction
    keras::losses::Reduction reduction;
    double weight = 1;
    std::optional<LossMean> mean = std::nullopt;  // where there are several outputs
  };
  struct MetricPart {
    std::string log_name;
    keras::MetricArgument::Made made;
    bool weighted = false;
  };
  struct Output {
    std::string name;  // empty: the only one
    std::optional<LossPart> loss = std::nullopt;
    std::vector<MetricPart> metrics = {};
  };

  // The outputs of a model that gives `names`. Errors: InvalidArgument.
  std::vector<Output> make_outputs(const std::vector<std::string>& names) const;
  std::optional<LossPart> make_loss(size_t index, const std::string& name, size_t count) const;
  static bool has_metric(const Output& output, const std::string& log_name);
  // Errors: InvalidArgument (two of one name).
  void add_metrics(Output& output, const keras::MetricList& list, bool weighted,
                   size_t count) const;
  // The outputs that compile has named.
  std::set<std::string> named_outputs() const;
  void check_names(const std::vector<std::string>& names) const;
  const std::vector<Output>& bind(const Structure& y_pred);
  // Once they are known. Errors: InvalidArgument (weights of an unknown output).
  void check_weighted_outputs(const Structure& sample_weight) const;
  static std::vector<NamedMetric> metrics_of(const std::vector<Output>& outputs);
  // Whether sums and means of their losses are minimized as they are, on one replica.
  static bool reports_what_it_minimizes(const std::vector<Output>& outputs);
  const keras::CompileOptions options_;
  const OutputNames output_names_;
  const keras::optimizers::Optimizer optimizer_;
  const int64_t steps_per_execution_;
  const LossMean loss_mean_;

  mutable std::mutex mutex_;  // while outputs_ are made
  std::atomic<bool> bound_{false};
  std::vector<Output> outputs_;
  std::weak_ptr<ReportedMetrics> reported_;
};

}  // namespace cohort::internal
