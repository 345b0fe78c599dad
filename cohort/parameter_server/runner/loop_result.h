// How a call of fit, evaluate or predict has ended, for the tasks that served it.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <string>

#include "cohort/cluster/coordination.h"
#include "cohort/cluster/server.h"
#include "cohort/core/function_ref.h"
#include "cohort/core/structure/structure.h"

namespace cohort::internal {

struct LoopResult {
  std::string name;                    // of the call
  int64_t generation = 0;              // of the coordinator
  Structure value = {};                // what it returned
  std::exception_ptr error = nullptr;  // null: none
  bool is_last = false;                // the coordinator ends with it, and says no goodbye
  bool is_left_out = false;            // the value, which was too large: this one is empty
};

// Keeps the result of the call of this number where all tasks find it, as long as the coordinator
// lives. A value of more than 64 MiB is left out. Returns its size in bytes. Errors: those of
// Coordination::set.
size_t publish(distribute::Coordination& coordination, int64_t call, const LoopResult& result);

// Removes it. Errors: those of Coordination::remove; DataLoss (what is there is no result).
void forget(distribute::Coordination& coordination, int64_t call);
// Says that results of calls below this one are kept no more. Errors: those of Coordination::set.
void set_first_kept(distribute::Coordination& coordination, int64_t call);

// Says that this task has the result of this call, and of all before. Where nobody can be told,
// nothing happens.
void acknowledge(distribute::Coordination& coordination, const TaskId& self, int64_t call);
// The last call of which a task has said so; 0: of none. Errors: DataLoss (what is there is no
// number).
int64_t last_taken(distribute::Coordination& coordination, const TaskId& task);

// Waits until it is there, also for a coordinator that was lost and may come back. Errors: those of
// `check`, which is called every few seconds; what ends this task's membership; Unavailable (this
// task was told to end before it had the result, or the result is kept no more); DataLoss (what is
// there is none); DeadlineExceeded.
LoopResult wait_for_result(
    distribute::Server& server, int64_t call, FunctionRef<void()> check,
    std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max());

}  // namespace cohort::internal
