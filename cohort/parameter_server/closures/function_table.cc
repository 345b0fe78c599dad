#include "cohort/parameter_server/closures/function_table.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/program/task.h"
#include "cohort/core/text.h"
#include "cohort/distribute/input/distributed_dataset.h"

namespace cohort::internal {

struct FunctionTable::State {
  struct Input {
    MakeWorkerInput make;
    distribute::DatasetFunction dataset;
  };

  // Errors: NotFound. With the lock.
  const Input& input(const std::string& name) const {
    const auto found = inputs.find(name);
    if (found != inputs.end()) return found->second;
    throw NotFoundError(
        str("there is no dataset function ", quoted(name), " in ", Task::current().to_string(),
            "; every task must add the same functions, before its server's join()"));
  }

  std::mutex mutex;  // guards what follows
  std::map<std::string, Input> inputs;
  std::set<std::string> unnamed_inputs;  // that nobody holds yet
  uint64_t last_input = 0;
  std::map<std::string, StructureFunction<>> captured;
  uint64_t last_captured = 0;
};

FunctionTable::FunctionTable(const PsCluster& cluster)
    : cluster_(cluster), state_(std::make_shared<State>()) {}

void FunctionTable::add_input(const std::string& name, MakeWorkerInput make,
                              distribute::DatasetFunction dataset) {
  const std::lock_guard lock(state_->mutex);
  if (!state_->inputs.emplace(name, State::Input{std::move(make), std::move(dataset)}).second) {
    throw AlreadyExistsError(str("there is a dataset function ", quoted(name), " already"));
  }
}

MakeWorkerInput FunctionTable::input(const std::string& name) const {
  const std::lock_guard lock(state_->mutex);
  return state_->input(name).make;
}

distribute::DatasetFunction FunctionTable::dataset(const std::string& name) const {
  const std::lock_guard lock(state_->mutex);
  const distribute::DatasetFunction& dataset = state_->input(name).dataset;
  if (dataset) return dataset;
  throw InvalidArgumentError(
      str("the function ", quoted(name), " returns a DistributedDataset; return a Dataset"));
}

std::string FunctionTable::new_input_name() {
  const std::lock_guard lock(state_->mutex);
  std::string name = str("dataset of the coordinator, ", ++state_->last_input);
  state_->unnamed_inputs.insert(name);
  return name;
}

std::shared_ptr<const void> FunctionTable::hold_input(const std::string& name) {
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->unnamed_inputs.erase(name) == 0) return nullptr;
  }
  return {nullptr, [weak = std::weak_ptr<State>(state_), name](const void*) {
            const auto state = weak.lock();
            if (state == nullptr) return;
            std::map<std::string, State::Input>::node_type dropped;  // freed without the lock
            const std::lock_guard lock(state->mutex);
            dropped = state->inputs.extract(name);
          }};
}

std::string FunctionTable::keep_captured(StructureFunction<> function) {
  cluster_.require_workers_here("a function over the program's own objects");
  const std::lock_guard lock(state_->mutex);
  std::string name = str("captured function ", ++state_->last_captured);
  state_->captured.emplace(name, std::move(function));
  return name;
}

void FunctionTable::drop_captured(const std::string& name) {
  std::map<std::string, StructureFunction<>>::node_type dropped;  // freed without the lock
  const std::lock_guard lock(state_->mutex);
  dropped = state_->captured.extract(name);
}

StructureFunction<> FunctionTable::captured(const std::string& name) const {
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->captured.find(name);
  return found == state_->captured.end() ? StructureFunction<>() : found->second;
}

}  // namespace cohort::internal
