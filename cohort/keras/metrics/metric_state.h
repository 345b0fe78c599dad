// The state behind a metric handle.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/structure/tensor.h"
#include "cohort/distribute/core/build_once.h"
#include "cohort/distribute/variables/variable.h"
#include "cohort/keras/base/config.h"
#include "cohort/train/objects/trackable.h"

namespace cohort::internal {

class StrategyCore;

// Named tensors, each summed over steps and replicas, from -0 on: x + -0 is x, also where x is 0,
// so that a sum of zeros differs from one to which nothing was added, under every strategy and in
// checkpoints.
// Thread safety: as Metric.
class MetricState final : public train::Trackable {
 public:
  // Computes `result` from the tensors, which are in the order of `variable_names`.
  using Result = std::function<Tensor(const std::vector<Tensor>&)>;

  struct Options {
    std::string name;
    std::vector<std::string> variable_names;
    Result result;
    std::vector<int64_t> shape = {};  // of each tensor
    // The shape is [classes]: the last dimension of the first predictions, which `see` is told of.
    bool shape_is_classes = false;
    bool first_is_count = false;  // the first tensor is a number of examples: int32, []
  };
  explicit MetricState(Options options);

  // Made in the same way, of the current scope, with nothing in it.
  std::shared_ptr<MetricState> another() const;

  const std::string& name() const { return options_.name; }
  DType dtype() const { return dtype_; }
  // How the metric was made; no class: a function of the program.
  std::string class_name;
  keras::Config config;
  // Learns how many classes there are, where the shape is [classes]. Cheap where it is not.
  // Errors: InvalidArgument (another number than before).
  void see(const Tensor& predictions);
  // Adds to the calling replica's tensors, in their order. Tensors that are -0 everywhere do not
  // count; numbers in the host's memory do.
  void add(at::ArrayRef<Tensor> deltas);
  // The same of numbers, where each tensor is a scalar.
  void add_numbers(at::ArrayRef<double> deltas);
  // What a batch without rows adds, of which a function may make no number (a mean, a maximum).
  // Makes the variables all the same, as the other replicas and tasks do at this moment.
  void add_nothing() { variables(); }
  // The result of zeros where there is no data.
  Tensor result();
  // Across replicas and outside of steps. Nothing: no replica has added anything since the reset.
  std::optional<Tensor> result_if_any();
  Tensor result_of_nothing() const;
  void reset();
  // Each variable's, as its components are in this task; none before there are variables. Outside
  // of steps.
  using Sums = std::vector<std::vector<Tensor>>;
  Sums sums() const;
  // They are again what `sums` gave: none, as after a reset. Outside of steps.
  void put_back(const Sums& sums);
  // Adds what `other` holds over all replicas. Across replicas and outside of steps.
  // Errors: InvalidArgument (other tensors, or of other shapes).
  void merge(MetricState& other);
  // None as long as their shape is not known.
  const std::vector<Variable>& variables();

  // Makes the variables, so that a checkpoint always has them; unless their shape is not known.
  std::vector<train::TrackableChild> checkpoint_children() override;

 private:
  std::vector<train::TrackableChild> named_variables() const;
  // Over all replicas.
  std::vector<Tensor> values();
  Tensor result_of(std::vector<Tensor> values) const;
  // Nothing: not known yet.
  std::optional<std::vector<int64_t>> shape() const;
  std::vector<Tensor> empty_sums() const;
  // Errors: FailedPrecondition (in a step).
  void check_outside_of_steps(const char* done, const char* call) const;
  Options options_;
  DType dtype_;
  mutable std::mutex shape_mutex_;
  std::vector<int64_t> classes_;            // of the first predictions; guarded by shape_mutex_
  std::shared_ptr<StrategyCore> strategy_;  // of the scope it was made in, if any
  BuildOnce build_once_;
  std::vector<Variable> variables_;
};

// The value of a scalar of float or double in the host's memory; nothing of other tensors.
std::optional<double> number_on_host(const Tensor& value);

// A state with "total" and "count", and their quotient (0 if count is 0) as the result.
std::shared_ptr<MetricState> make_mean_state(std::string name);
// Adds the (weighted) sum of values to total, and the sum of weights to count.
// Shapes: values [..]; weights undefined, or broadcast to values, by Keras's rules: with one
// dimension less they get a last one of size 1; with still less, values are first averaged over
// those that weights lack.
void add_to_mean(MetricState& state, const Tensor& values, const Tensor& weights);

// Values without the dimensions that only they have, where these are two or more; else `values`.
enum class InnerDims { kMean, kSum };
Tensor without_inner_dims(const Tensor& values, const Tensor& weights, InnerDims inner);

// The weighted values, and the sum of the weights that they were given.
struct Weighted {
  Tensor values;
  Tensor weight_sum;
};
Weighted weigh(const Tensor& values, const Tensor& weights, const MetricState& state);

}  // namespace cohort::internal
