#include "cohort/parameter_server/runner/loop_table.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/core/error.h"
#include "cohort/core/program/task.h"
#include "cohort/core/text.h"
#include "cohort/parameter_server/closures/closure_message.h"
#include "cohort/parameter_server/coordinator/coordinator_core.h"

namespace cohort::internal {
namespace {

std::exception_ptr not_come_yet(int64_t call) {
  return rpc::make_error(
      Code::kUnavailable,
      str("the program of ", Task::current().to_string(), " has not come to its call ", call,
          " of fit, evaluate or predict yet"),
      Task::current().to_string(), {.cause = Cause::kInputLost});
}

}  // namespace

ServedInput::ServedInput(const WorkerInput::MakeDataset& make,
                         const distribute::InputContext& of_any)
    : of_task([make, of_any] {
        distribute::InputContext context = of_any;
        context.input_pipeline_id = std::max(0, Task::current().index());
        return std::make_unique<WorkerInput>(make, context);
      }) {}

LoopCall::~LoopCall() {
  if (owns_coordinator) coordinator->stop();
  table.close(*this);
}

std::shared_ptr<LoopCall> LoopTable::open() {
  const std::lock_guard lock(mutex_);
  if (auto call = open_.lock()) return call;
  auto call = std::make_shared<LoopCall>(*this, ++opened_);
  open_ = call;
  return call;
}

void LoopTable::declare(LoopCall& call, const std::shared_ptr<const StepFunction>& step) {
  const std::lock_guard lock(mutex_);
  if (call.name.empty()) name_ = call.name = step->name;
  steps_[step->name] = step;
}

void LoopTable::set_input(const LoopCall&, const InputKey& key,
                          std::shared_ptr<ServedInput> input) {
  const std::lock_guard lock(mutex_);
  inputs_[key] = std::move(input);
}

void LoopTable::remove_input(const LoopCall&, const InputKey& key) {
  std::shared_ptr<ServedInput> removed;  // ended without the lock
  const std::lock_guard lock(mutex_);
  if (const auto found = inputs_.find(key); found != inputs_.end()) {
    removed = std::move(found->second);
    inputs_.erase(found);
  }
}

void LoopTable::serve(const LoopCall& call) {
  {
    const std::lock_guard lock(mutex_);
    served_ = call.number;
  }
  changed_.notify_all();
}

void LoopTable::close(const LoopCall& call) {
  std::map<std::string, std::shared_ptr<const StepFunction>> steps;  // ended without the lock
  std::map<InputKey, std::shared_ptr<ServedInput>> inputs;
  {
    const std::lock_guard lock(mutex_);
    steps.swap(steps_);
    inputs.swap(inputs_);
    name_.clear();
    if (given_up_ != call.number) served_ = std::max(served_, call.number);
  }
  changed_.notify_all();
}

void LoopTable::give_up(const LoopCall& call) {
  {
    const std::lock_guard lock(mutex_);
    given_up_ = call.number;
  }
  changed_.notify_all();
}

LoopTable::Found LoopTable::find(int64_t call, const std::string& step, const InputKey& input,
                                 int64_t generation, Clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  const auto is_decided = [&] { return has_come_to(call) || given_up_ == call; };
  const bool decided = changed_.wait_until(lock, deadline, is_decided);
  if (!decided || given_up_ == call) {
    awaited_ = decided ? call + 1 : call;  // what was given up does not come
    std::rethrow_exception(not_come_yet(call));
  }
  const std::string self = Task::current().to_string();
  if (name_.empty() || served_ != call) {
    if (generation_ != 0 && generation > generation_) {
      coordinator_went_back_ = true;
      awaited_ = std::numeric_limits<int64_t>::max();  // by the program that is started again
      std::rethrow_exception(not_come_yet(call));
    }
    throw FailedPreconditionError(str("the coordinator runs ", quoted(step), " as its call ", call,
                                      ", which is over in ", self, "; start all tasks again"));
  }
  const auto found_step = steps_.find(step);
  const auto found_input = inputs_.find(input);
  if (found_step == steps_.end() || found_input == inputs_.end()) {
    throw FailedPreconditionError(str("the coordinator's call ", call, " runs ", quoted(step),
                                      ", but that of ", self, " is ", quoted(name_),
                                      ": every task must make the same calls in the same order"));
  }
  generation_ = std::max(generation_, generation);
  return {found_step->second, found_input->second};
}

void LoopTable::learn_generation(int64_t generation) {
  const std::lock_guard lock(mutex_);
  generation_ = std::max(generation_, generation);
}

void LoopTable::check_coordinator() {
  const std::lock_guard lock(mutex_);
  if (!coordinator_went_back_) return;
  throw UnavailableError(
      "the coordinator was started again, and is at an earlier call than this task: start it "
      "again, too");
}

void LoopTable::wait_for_program(Clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  if (changed_.wait_until(lock, deadline, [&] { return has_come_to(awaited_); })) return;
  std::rethrow_exception(not_come_yet(awaited_));
}

}  // namespace cohort::internal
