// Functions of the library that closures call by name, beside those that a program declares. They
// are in every task whose program has the library, and need no declaration.
//
//   const AddedRoutine kAdded("analyze_dataset", analyze_shard);   // at namespace scope
#pragma once

#include <string>

#include "cohort/core/structure/structure.h"

namespace cohort::internal {

class WorkerSide;

using WorkerRoutine = Structure (*)(const WorkerSide& worker, const Structure& arguments);

// Adds a routine, for good. No function of a program is called by its name.
class AddedRoutine {
 public:
  AddedRoutine(const char* name, WorkerRoutine routine);
};

// nullptr: there is none. Thread safety: any thread.
WorkerRoutine worker_routine(const std::string& name);

}  // namespace cohort::internal
