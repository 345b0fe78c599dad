#include "cohort/distribute/step_runner.h"

#include <exception>
#include <optional>

#include "cohort/core/text.h"
#include "cohort/distribute/distributed_dataset.h"
#include "cohort/distribute/strategy.h"
#include "cohort/distribute/strategy_core.h"

namespace cohort::internal {
namespace {

using distribute::DatasetFunction;
using distribute::DistributedDataset;
using distribute::DistributedIterator;
using distribute::PerReplica;
using distribute::ReduceOp;
using distribute::ReplicaContext;
using distribute::Strategy;

Tensor reduced(const Strategy& strategy, StepReduction reduction, const PerReplica<Tensor>& value) {
  switch (reduction) {
    case StepReduction::kSum:
      return strategy.reduce(ReduceOp::SUM, value);
    case StepReduction::kMean:
      return strategy.reduce(ReduceOp::MEAN, value);
    case StepReduction::kConcat:
      break;
  }
  return strategy.gather(value, 0);
}

Structure reduced(const Strategy& strategy, const StepFunction& step,
                  const PerReplica<Structure>& results) {
  const size_t leaves = results.value(0).num_leaves();
  const size_t reductions = step.reductions.size();
  if (reductions != 1 && reductions != leaves) {
    throw InvalidArgumentError(str("step ", quoted(step.name), " has ", reductions,
                                   " reductions, but its result has ", leaves,
                                   " leaves; give one reduction, or one for each leaf"));
  }
  size_t next = 0;
  return map_structures(
      std::vector<Structure>(results.values().begin(), results.values().end()),
      [&](const std::vector<Leaf>& components) -> Leaf {
        PerReplica<Tensor>::Values tensors;
        for (const Leaf& leaf : components) tensors.push_back(leaf.tensor());
        const StepReduction reduction = step.reductions[reductions == 1 ? 0 : next++];
        return reduced(strategy, reduction, PerReplica<Tensor>(std::move(tensors)));
      });
}

// Looks one batch ahead, where has_next() is asked. An error of reading stays until the step that
// it is for.
class LocalInput final : public StepInput {
 public:
  LocalInput(const StrategyCore& core, DistributedDataset dataset)
      : core_(core), dataset_(std::move(dataset)) {}

  bool belongs_to(const StrategyCore& core) const { return &core_ == &core; }

  bool has_next() override {
    if (ahead_ || error_) return true;
    if (at_end_) return false;
    try {
      if (!iterator_) iterator_.emplace(dataset_.iterator());
      ahead_ = iterator_->next();
      at_end_ = !ahead_;
    } catch (...) {
      error_ = std::current_exception();
    }
    return !at_end_;
  }

  void restart() override {
    iterator_.reset();
    ahead_.reset();
    error_ = nullptr;
    at_end_ = false;
  }

  PerReplica<Structure> take() {
    if (!has_next()) {
      throw OutOfRangeError(
          "a step was scheduled on an input that is at its end; ask has_next() "
          "before, or begin another pass with restart()");
    }
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    return *std::exchange(ahead_, std::nullopt);
  }

 private:
  const StrategyCore& core_;  // alive: the dataset keeps it
  DistributedDataset dataset_;
  std::optional<DistributedIterator> iterator_;  // made when a batch is asked for
  std::optional<PerReplica<Structure>> ahead_;
  std::exception_ptr error_;
  bool at_end_ = false;
};

// Runs each step where it is scheduled, on all replicas of this process at once.
class SynchronousRunner final : public StepRunner {
 public:
  explicit SynchronousRunner(std::shared_ptr<StrategyCore> core) : strategy_(std::move(core)) {}

  std::future<Structure> schedule(const std::shared_ptr<const StepFunction>& step,
                                  const std::shared_ptr<StepInput>& input) override {
    join();
    auto* local = dynamic_cast<LocalInput*>(input.get());
    if (local == nullptr || !local->belongs_to(*strategy_.core())) {
      throw InvalidArgumentError(str("step ", quoted(step->name),
                                     " was scheduled on another strategy's input; make it with "
                                     "make_input() of this runner"));
    }
    std::promise<Structure> promise;
    try {
      promise.set_value(run(step, local->take()));
    } catch (...) {
      first_error_ = std::current_exception();
      promise.set_exception(first_error_);
    }
    return promise.get_future();
  }

  void join() override {
    if (first_error_) std::rethrow_exception(std::exchange(first_error_, nullptr));
  }

  std::shared_ptr<StepInput> make_input(const data::Dataset& dataset) override {
    return std::make_shared<LocalInput>(*strategy_.core(),
                                        strategy_.experimental_distribute_dataset(dataset));
  }
  std::shared_ptr<StepInput> make_input(const DatasetFunction& fn) override {
    return std::make_shared<LocalInput>(*strategy_.core(),
                                        strategy_.distribute_datasets_from_function(fn));
  }

 private:
  Structure run(const std::shared_ptr<const StepFunction>& step,
                const PerReplica<Structure>& batch) const {
    const auto results = strategy_.run(  // which keeps the step, for a replica that it gives up
        [step](ReplicaContext& context, const Structure& piece) {
          return step->call(context, piece);
        },
        batch);
    return reduced(strategy_, *step, results);
  }

  Strategy strategy_;
  std::exception_ptr first_error_;  // that nobody was told of by schedule() or join()
};

}  // namespace

std::unique_ptr<StepRunner> StrategyCore::make_runner() {
  return std::make_unique<SynchronousRunner>(shared_from_this());
}

}  // namespace cohort::internal
