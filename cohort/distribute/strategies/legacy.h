// The interface of programs that were written for the first version of this model, as in guide 002.
// New code iterates over a DistributedDataset and calls Strategy::run.
//
//   InputIterator input = strategy.make_dataset_iterator(dataset);
//   auto losses = strategy.experimental_run(train_step, input);
#pragma once

#include <any>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/distribute/input/distributed_dataset.h"
#include "cohort/distribute/strategies/context.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/strategies/strategy.h"
#include "cohort/ops/gradient_tape.h"

namespace cohort::distribute {

// Made by Strategy::make_dataset_iterator and make_input_fn_iterator.
// Thread safety: none.
class InputIterator {
 public:
  explicit InputIterator(DistributedDataset dataset)
      : dataset_(std::move(dataset)), iterator_(dataset_.iterator()) {}

  // Begins another pass; a new iterator is at the beginning of its first pass.
  void initialize() { iterator_ = dataset_.iterator(); }
  // Errors: as DistributedIterator::get_next.
  PerReplica<Structure> get_next() { return iterator_.get_next(); }

 private:
  DistributedDataset dataset_;
  DistributedIterator iterator_;
};

// The outputs that remain after several steps: those of the last one.
// Thread safety: none; in a step, all replicas together.
class COHORT_API MultiStepContext {
 public:
  using Outputs = std::map<std::string, PerReplica<Tensor>>;

  // Stores an output of the current step, in place of the previous one: each replica's, or one that
  // is reduced over the replicas. Called in cross-replica context.
  // Errors: as Strategy::reduce.
  void set_last_step_output(const std::string& name, const PerReplica<Tensor>& output,
                            std::optional<ReduceOp> reduce_op = std::nullopt);
  // The same, called on every replica with its own output. Collective.
  void set_last_step_output(ReplicaContext& replica, const std::string& name, const Tensor& output,
                            std::optional<ReduceOp> reduce_op = std::nullopt);
  // The outputs by name; an output has one component if it was reduced.
  const Outputs& last_step_outputs() const { return outputs_; }

  // Stores a value of any type; called in cross-replica context.
  void set_non_tensor_output(const std::string& name, std::any output);
  // The same, called on every replica: stores a std::vector<std::any> of all replicas' values, in
  // replica order.
  // Collective.
  void set_non_tensor_output(ReplicaContext& replica, const std::string& name, std::any output);
  const std::map<std::string, std::any>& non_tensor_outputs() const { return non_tensor_outputs_; }

 private:
  friend class StrategyExtended;

  Outputs outputs_;
  std::map<std::string, std::any> non_tensor_outputs_;
};

// A step with its own input.
class COHORT_API StandardInputStep {
 public:
  // dataset_fn makes batches for one replica each. The strategy must outlive the step.
  StandardInputStep(std::function<data::Dataset()> dataset_fn, const Strategy& strategy);

  // Begins another pass over the input.
  void initialize() { input_.initialize(); }
  const Strategy& distribution() const { return *strategy_; }

 protected:
  InputIterator& input() { return input_; }

 private:
  const Strategy* strategy_;
  InputIterator input_;
};

struct SingleLossStepOptions {
  int iterations_per_step = 1;  // batches for each call
};

// Training steps of a model with one loss: in each, every replica computes
// loss_fn(MultiStepContext&, batch), and optimizer.apply_gradients updates variables().
//
//   StandardSingleLossStep step(dataset_fn, loss_fn, optimizer,
//                               [&] { return layer.trainable_variables(); }, strategy);
//   step();
template <class LossFn, class Optimizer, class Variables>
class StandardSingleLossStep : public StandardInputStep {
 public:
  StandardSingleLossStep(std::function<data::Dataset()> dataset_fn, LossFn loss_fn,
                         Optimizer optimizer, Variables variables, const Strategy& strategy,
                         SingleLossStepOptions options = {})
      : StandardInputStep(std::move(dataset_fn), strategy),
        loss_fn_(std::move(loss_fn)),
        optimizer_(std::move(optimizer)),
        variables_(std::move(variables)),
        options_(options) {}

  // Errors: OutOfRange (the input ends), those of loss_fn and of the optimizer.
  MultiStepContext operator()() {
    const auto step = [this](MultiStepContext& context, const PerReplica<Structure>& batch) {
      distribution().run([&](const Structure& inputs) { train(context, inputs); }, batch);
    };
    return distribution().extended().experimental_run_steps_on_iterator(
        step, input(), options_.iterations_per_step);
  }

 private:
  void train(MultiStepContext& context, const Structure& inputs) const {
    GradientTape tape;
    const Tensor loss = loss_fn_(context, inputs);
    const std::vector<Variable> variables = variables_();
    std::vector<Tensor> gradients = tape.gradient(loss, variables);
    std::vector<std::pair<Tensor, Variable>> pairs;
    for (size_t i = 0; i < variables.size(); ++i) {
      pairs.emplace_back(std::move(gradients[i]), variables[i]);
    }
    optimizer_.apply_gradients(pairs);
  }

  LossFn loss_fn_;
  Optimizer optimizer_;
  Variables variables_;
  SingleLossStepOptions options_;
};

}  // namespace cohort::distribute
