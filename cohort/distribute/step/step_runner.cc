#include "cohort/distribute/step/step_runner.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "cohort/core/caught_error.h"
#include "cohort/core/profiler/phase.h"
#include "cohort/core/recording/step_recording.h"
#include "cohort/core/text.h"
#include "cohort/distribute/core/context_stack.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/input/distribute_dataset.h"
#include "cohort/distribute/reduce/reduce_replicas.h"
#include "cohort/distribute/reduce/structure_form.h"
#include "cohort/train/objects/save_group.h"

namespace cohort::internal {
namespace {

using distribute::DatasetFunction;
using distribute::DistributedDataset;
using distribute::DistributedIterator;
using distribute::PerReplica;
using distribute::ReduceOp;
using distribute::ReplicaContext;

Leaf reduced(StrategyCore& core, StepReduction reduction, const std::vector<Leaf>& leaves) {
  if (reduction == StepReduction::kConcat) {  // which may be strings
    const PerReplica<Structure> values(PerReplica<Structure>::Values(leaves.begin(), leaves.end()));
    return gather_replicas(core, values, 0).leaf();
  }
  PerReplica<Tensor>::Values tensors;
  for (const Leaf& leaf : leaves) tensors.push_back(leaf.tensor());
  const bool is_sum = reduction == StepReduction::kSum;
  return reduce_replicas(core, is_sum ? ReduceOp::SUM : ReduceOp::MEAN,
                         PerReplica<Tensor>(std::move(tensors)));
}

StepReduction reduction_of_leaf(const StepFunction& step, size_t leaf) {
  return step.reductions[step.reductions.size() == 1 ? 0 : leaf];
}

// Errors: InvalidArgument (strings and bools, which have no sum and no mean).
void check_reducible(const StepFunction& step, const Structure& result) {
  size_t next = 0;
  result.for_each_with_path([&](const std::string& path, const Leaf& leaf) {
    const bool joins = reduction_of_leaf(step, next++) == StepReduction::kConcat;
    const bool is_bool = leaf.is_tensor() && leaf.tensor().scalar_type() == at::kBool;
    if (joins || !(leaf.is_strings() || is_bool)) return;
    throw InvalidArgumentError(
        str("step ", quoted(step.name), " returned ", is_bool ? "bools" : "strings", " of shape ",
            shape_str(leaf.sizes()), path.empty() ? "" : str(" at ", path),
            ", which have no sum or mean over the replicas; return numbers"));
  });
}

Structure reduced(StrategyCore& core, const StepFunction& step,
                  const PerReplica<Structure>& own_results) {
  const PerReplica<Structure> results = of_all_replicas(core, own_results);
  const size_t leaves = results.value(0).num_leaves();
  const size_t reductions = step.reductions.size();
  if (reductions != 1 && reductions != leaves) {
    throw InvalidArgumentError(str("step ", quoted(step.name), " has ", reductions,
                                   " reductions, but its result has ", leaves,
                                   " leaves; give one reduction, or one for each leaf"));
  }
  if (!core.are_of_all_replicas(results.size())) {
    agree_on_form(core.group(), results.value(0), "the results of a step");
  }
  check_reducible(step, results.value(0));
  size_t next = 0;
  return map_structures(std::vector<Structure>(results.values().begin(), results.values().end()),
                        [&](const std::vector<Leaf>& components) -> Leaf {
                          return reduced(core, reduction_of_leaf(step, next++), components);
                        });
}

}  // namespace

void in_every_task(const std::shared_ptr<StrategyCore>& core, FunctionRef<void()> call) {
  const std::unique_ptr<StepRunner> runner = core->make_runner();
  try {
    call();
  } catch (...) {
    runner->fail(std::current_exception());
    throw;
  }
}

Structure run_step(StrategyCore& core, const std::shared_ptr<const StepFunction>& step,
                   const PerReplica<Structure>& batch) {
  const auto results = run_on_replicas(  // which keeps the step, for a replica that it gives up
      core, distribute::RunOptions{.capture = step->graphs},
      [step](ReplicaContext& context, const Structure& piece) {
        return step->call(context, piece);
      },
      batch);
  return reduced(core, *step, results);
}

std::vector<std::future<Structure>> StepRunner::schedule_several(
    const std::shared_ptr<const StepFunction>& step, const std::shared_ptr<StepInput>& input,
    int64_t) {
  std::vector<std::future<Structure>> results;
  results.push_back(schedule(step, input));
  return results;
}

namespace {

// A graph of so many steps is made in a moment, and has one launch for all of them.
constexpr int64_t kMostStepsOfGraph = 16;

// Whether several steps may run as one.
bool may_be_recorded(const StrategyCore& core, const StepFunction& step) {
  return core.num_replicas_in_sync() == 1 && step.graphs && step.graphs->why_not().empty();
}

// Says that another of several steps that run as one begins: what a step tells the host of itself.
void begin_next_step() {
  const auto begin = [] {
    current_replica()->next_step();
    count_step();
  };
  StepRecording* const recording = StepRecording::current();
  recording == nullptr ? begin() : recording->each_time(begin);
}

// Runs a step for each of the batches, as one step. Returns their results.
std::vector<Structure> run_steps(StrategyCore& core,
                                 const std::shared_ptr<const StepFunction>& step,
                                 std::vector<Structure> batches) {
  const auto run_all = [step](ReplicaContext& context, const Structure& pieces) {
    std::vector<Structure> results;
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (i > 0) begin_next_step();
      results.push_back(step->call(context, pieces[i]));
    }
    return Structure::make_tuple(std::move(results));
  };
  const auto all = run_on_replicas(core, distribute::RunOptions{.capture = step->graphs}, run_all,
                                   PerReplica<Structure>(PerReplica<Structure>::Values{
                                       Structure::make_tuple(std::move(batches))}));
  std::vector<Structure> results;
  for (size_t i = 0; i < all.value(0).size(); ++i) {
    results.push_back(reduced(
        core, *step, PerReplica<Structure>(PerReplica<Structure>::Values{all.value(0)[i]})));
  }
  return results;
}

class LocalInput final : public StepInput {
 public:
  LocalInput(std::shared_ptr<StrategyCore> core, DistributedDataset dataset)
      : core_(std::move(core)), dataset_(std::move(dataset)) {}

  bool belongs_to(const StrategyCore& core) const { return core_.get() == &core; }

  bool has_next() override { return iterator().has_next(); }

  void restart() override {
    if (iterator_) ++pass_;
    position_.reset();
    iterator_.reset();
  }

  int64_t cardinality() const override { return dataset_.cardinality(); }
  StructureSpec element_spec() const override { return dataset_.element_spec().component; }
  Structure example() const override {
    return dataset_.iterator_of_pass(pass_).get_next().value(0);
  }

  PerReplica<Structure> take() {
    if (auto batch = iterator().next()) return *std::move(batch);
    throw OutOfRangeError(
        "a step was scheduled on an input that is at its end; ask has_next() "
        "before, or begin another pass with restart()");
  }

  std::vector<train::TrackableChild> checkpoint_children() override {
    if (position_ == nullptr) position_ = iterator().trackable();
    return {{"iterator", position_.get()}};
  }
  std::shared_ptr<train::SaveGroup> save_group() const override { return core_->save_group(); }
  bool has_checkpoint_values() const override { return true; }

  std::vector<train::CheckpointValue> checkpoint_values() override {
    data::IteratorState state;
    state.set_int(kPass, static_cast<int64_t>(pass_));
    return {{.attribute = train::kIteratorState,
             .parts = {{Leaf(StringTensor::scalar(state.serialize()))}}}};
  }

  // The iterator restores its own position, as a child.
  void prepare_restore(train::RestoreSource& source) override {
    const StringTensor bytes = source.read_strings(train::kIteratorState);
    const auto state = data::IteratorState::parse(bytes.item());
    const int64_t pass = state.get_int(kPass, 0, std::numeric_limits<int64_t>::max());
    source.on_commit([this, pass] { pass_ = static_cast<uint64_t>(pass); });
  }

 private:
  static constexpr const char* kPass = "pass";

  // Made when it is first needed: a new pass reads nothing before.
  DistributedIterator& iterator() {
    if (!iterator_) iterator_.emplace(dataset_.iterator_of_pass(pass_));
    return *iterator_;
  }

  const std::shared_ptr<StrategyCore> core_;
  const DistributedDataset dataset_;
  uint64_t pass_ = 0;  // the iterator's; without an iterator, that of the next one
  std::optional<DistributedIterator> iterator_;
  std::shared_ptr<train::Trackable> position_;  // the iterator's
};

// Runs each step where it is scheduled, on all replicas of this process at once.
class SynchronousRunner final : public StepRunner {
 public:
  explicit SynchronousRunner(std::shared_ptr<StrategyCore> core) : core_(std::move(core)) {}

  void fail(const std::exception_ptr& error) noexcept override { core_->note_failure(error); }

  std::future<Structure> schedule(const std::shared_ptr<const StepFunction>& step,
                                  const std::shared_ptr<StepInput>& input) override {
    join();
    LocalInput& local = own_input(*step, input);
    return result_of([&] { return run_step(*core_, step, local.take()); });
  }

  std::vector<std::future<Structure>> schedule_several(
      const std::shared_ptr<const StepFunction>& step, const std::shared_ptr<StepInput>& input,
      int64_t most) override {
    const int64_t wanted = std::min(most, kMostStepsOfGraph);
    if (wanted == 1 || !may_be_recorded(*core_, *step)) {
      return StepRunner::schedule_several(step, input, most);
    }
    join();
    LocalInput& local = own_input(*step, input);
    std::vector<PerReplica<Structure>> batches;
    std::vector<std::future<Structure>> results;
    std::exception_ptr unread;  // comes after the steps of the batches before it
    try {
      while (std::ssize(batches) < wanted && (batches.empty() || local.has_next())) {
        batches.push_back(local.take());
      }
    } catch (...) {
      unread = caught_error();
    }
    if (batches.size() > 1) {
      run_as_one(step, batches, results);
    } else if (batches.size() == 1) {
      results.push_back(result_of([&] { return run_step(*core_, step, batches[0]); }));
    }
    if (unread != nullptr && first_error_ == nullptr) {
      results.push_back(result_of([&]() -> Structure { std::rethrow_exception(unread); }));
    }
    return results;
  }

  void join() override {
    if (first_error_) std::rethrow_exception(std::exchange(first_error_, nullptr));
  }

  std::shared_ptr<StepInput> make_input(const data::Dataset& dataset) override {
    return std::make_shared<LocalInput>(core_, distribute_dataset(core_, dataset, {}));
  }
  std::shared_ptr<StepInput> make_input(const DatasetFunction& fn,
                                        const distribute::InputOptions& options) override {
    return std::make_shared<LocalInput>(core_, distribute_from_function(core_, fn, options));
  }
  std::shared_ptr<StepInput> make_input(const DistributedDataset& dataset) override {
    if (dataset.core() != core_) {
      throw InvalidArgumentError(str(
          "a dataset that was distributed by another strategy was given where ", core_->name(),
          " runs the steps; distribute it with the strategy in whose scope the model was made"));
    }
    return std::make_shared<LocalInput>(core_, dataset);
  }

 private:
  // Errors: InvalidArgument (another strategy's).
  LocalInput& own_input(const StepFunction& step, const std::shared_ptr<StepInput>& input) const {
    auto* const local = dynamic_cast<LocalInput*>(input.get());
    if (local != nullptr && local->belongs_to(*core_)) return *local;
    throw InvalidArgumentError(str("step ", quoted(step.name),
                                   " was scheduled on another strategy's input; make it with "
                                   "make_input() of this runner"));
  }

  std::future<Structure> result_of(FunctionRef<Structure()> run) {
    std::promise<Structure> promise;
    try {
      promise.set_value(run());
    } catch (...) {
      first_error_ = caught_error();
      promise.set_exception(first_error_);
    }
    return promise.get_future();
  }

  void run_as_one(const std::shared_ptr<const StepFunction>& step,
                  const std::vector<PerReplica<Structure>>& batches,
                  std::vector<std::future<Structure>>& results) {
    std::vector<Structure> pieces;
    for (const PerReplica<Structure>& batch : batches) pieces.push_back(batch.value(0));
    std::vector<Structure> all;
    results.push_back(result_of([&] {
      all = run_steps(*core_, step, std::move(pieces));
      return all[0];
    }));
    for (size_t i = 1; i < all.size(); ++i) {
      results.push_back(result_of([&] { return all[i]; }));
    }
  }

  const std::shared_ptr<StrategyCore> core_;
  std::exception_ptr first_error_;  // that nobody was told of by schedule() or join()
};

}  // namespace

std::unique_ptr<StepRunner> make_local_runner(std::shared_ptr<StrategyCore> core) {
  return std::make_unique<SynchronousRunner>(std::move(core));
}

}  // namespace cohort::internal
