// The functions of a program that workers of its cluster call by name, beside the strategy's named
// functions: those that make inputs, and those over the program's own objects.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cohort/core/structure/structure_call.h"
#include "cohort/distribute/input/input_context.h"
#include "cohort/parameter_server/closures/functions_in_use.h"
#include "cohort/parameter_server/cluster/ps_cluster.h"

namespace cohort::distribute {
class DistributedDataset;
}

namespace cohort::internal {

// Makes one worker's input.
using MakeWorkerInput =
    std::function<distribute::DistributedDataset(const distribute::InputContext&)>;

// Thread safety: any thread.
class FunctionTable {
 public:
  explicit FunctionTable(const PsCluster& cluster);

  // The functions that make workers' inputs, by name, the same in every task.
  // dataset: makes the dataset of which the input is made, if there is one.
  // Errors: AlreadyExists; NotFound; InvalidArgument (there is none).
  void add_input(const std::string& name, MakeWorkerInput make,
                 distribute::DatasetFunction dataset = nullptr);
  MakeWorkerInput input(const std::string& name) const;
  distribute::DatasetFunction dataset(const std::string& name) const;
  // A name that no other input has.
  std::string new_input_name();
  // Holds the function of a name that new_input_name has given: it goes with the last of these,
  // which do not hold the table. Null for other names, which tasks declare for as long as the
  // strategy lives.
  std::shared_ptr<const void> hold_input(const std::string& name);

  // Functions over the program's own objects, for workers of this process. Returns the name by
  // which they find it. Errors: FailedPrecondition (the workers are other processes).
  std::string keep_captured(StructureFunction<> function);
  void drop_captured(const std::string& name);
  // An empty one where there is none.
  StructureFunction<> captured(const std::string& name) const;

  // The functions that workers of this process run.
  FunctionsInUse& in_use() { return in_use_; }

 private:
  struct State;

  const PsCluster& cluster_;
  const std::shared_ptr<State> state_;
  FunctionsInUse in_use_;
};

}  // namespace cohort::internal
