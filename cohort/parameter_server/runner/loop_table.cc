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
  const auto calls = calls_.lock();
  if (auto call = calls->open.lock()) return call;
  auto call = std::make_shared<LoopCall>(*this, ++opened_);
  calls->open = call;
  return call;
}

void LoopTable::declare(LoopCall& call, const std::shared_ptr<const StepFunction>& step) {
  const auto calls = calls_.lock();
  if (call.name.empty()) calls->name = call.name = step->name;
  calls->steps[step->name] = step;
}

void LoopTable::set_input(const LoopCall&, const InputKey& key,
                          std::shared_ptr<ServedInput> input) {
  const auto calls = calls_.lock();
  calls->inputs[key] = std::move(input);
}

void LoopTable::remove_input(const LoopCall&, const InputKey& key) {
  std::shared_ptr<ServedInput> removed;  // ended without the lock
  const auto calls = calls_.lock();
  if (const auto found = calls->inputs.find(key); found != calls->inputs.end()) {
    removed = std::move(found->second);
    calls->inputs.erase(found);
  }
}

void LoopTable::serve(const LoopCall& call) { calls_.change()->served = call.number; }

void LoopTable::close(const LoopCall& call) {
  std::map<std::string, std::shared_ptr<const StepFunction>> steps;  // ended without the lock
  std::map<InputKey, std::shared_ptr<ServedInput>> inputs;
  const auto calls = calls_.change();
  steps.swap(calls->steps);
  inputs.swap(calls->inputs);
  calls->name.clear();
  if (calls->given_up != call.number) calls->served = std::max(calls->served, call.number);
}

void LoopTable::give_up(const LoopCall& call) { calls_.change()->given_up = call.number; }

LoopTable::Found LoopTable::find(int64_t call, const std::string& step, const InputKey& input,
                                 int64_t generation, Clock::time_point deadline) {
  auto calls = calls_.lock();
  const auto is_decided = [&] { return calls->has_come_to(call) || calls->given_up == call; };
  const bool decided = calls.wait_until(deadline, is_decided);
  if (!decided || calls->given_up == call) {
    calls->awaited = decided ? call + 1 : call;  // what was given up does not come
    std::rethrow_exception(not_come_yet(call));
  }
  const std::string self = Task::current().to_string();
  if (calls->name.empty() || calls->served != call) {
    if (calls->generation != 0 && generation > calls->generation) {
      calls->coordinator_went_back = true;
      calls->awaited = std::numeric_limits<int64_t>::max();  // by the program that is started again
      std::rethrow_exception(not_come_yet(call));
    }
    throw FailedPreconditionError(str("the coordinator runs ", quoted(step), " as its call ", call,
                                      ", which is over in ", self, "; start all tasks again"));
  }
  const auto found_step = calls->steps.find(step);
  const auto found_input = calls->inputs.find(input);
  if (found_step == calls->steps.end() || found_input == calls->inputs.end()) {
    throw FailedPreconditionError(str("the coordinator's call ", call, " runs ", quoted(step),
                                      ", but that of ", self, " is ", quoted(calls->name),
                                      ": every task must make the same calls in the same order"));
  }
  calls->generation = std::max(calls->generation, generation);
  return {found_step->second, found_input->second};
}

void LoopTable::learn_generation(int64_t generation) {
  const auto calls = calls_.lock();
  calls->generation = std::max(calls->generation, generation);
}

void LoopTable::check_coordinator() {
  const auto calls = calls_.lock();
  if (!calls->coordinator_went_back) return;
  throw UnavailableError(
      "the coordinator was started again, and is at an earlier call than this task: start it "
      "again, too");
}

void LoopTable::wait_for_program(Clock::time_point deadline) {
  auto calls = calls_.lock();
  if (calls.wait_until(deadline, [&] { return calls->has_come_to(calls->awaited); })) return;
  std::rethrow_exception(not_come_yet(calls->awaited));
}

}  // namespace cohort::internal
