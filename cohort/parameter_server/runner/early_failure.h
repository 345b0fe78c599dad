// How the others learn that a task's program has failed, so that nobody waits for it in vain:
// before all have come, mostly.
#pragma once

#include <exception>
#include <memory>
#include <string>

#include "cohort/cluster/server.h"
#include "cohort/parameter_server/cluster/reported_failures.h"

namespace cohort::internal {

// Tells the other tasks that this one has failed with `error`. Returns at once; they are told when
// both sides have registered.
void tell_failure(distribute::Server& server, const std::exception_ptr& error);

// The same of one that leaves, which may have registered too late for that: returns when the
// coordinator knows it, or in seconds.
// Errors: Unavailable, DeadlineExceeded (it cannot be told).
void tell_failure_again(distribute::Server& server, const std::exception_ptr& error);

// Tells that a task which has served leaves with that error: returns when the coordinator knows it,
// or in seconds. Errors: Unavailable, DeadlineExceeded (it cannot be told).
void tell_end(distribute::Server& server, const std::exception_ptr& error);

// For the coordinator, which has failed so itself: those that have come get it as the error of
// their first call of fit, evaluate or predict. Returns when they have it, or in seconds.
void tell_own_failure(distribute::Server& server, const std::exception_ptr& error);

// For the coordinator. Waits until all tasks have come, as Coordination::wait_for_start; where one
// has said that it has failed, only some seconds more: if what has failed there fails here as well,
// this task comes to its own error once all are there. Else it tells those that have come. Returns
// what it is told, from then on, too.
// Errors: those of wait_for_start; that of the task that has failed, which its text names.
std::shared_ptr<const ReportedFailures> wait_for_tasks(distribute::Server& server);

// Says, for the log, that `whom` ("the other tasks") could not be told that this task failed with
// `error`, and why not.
std::string untold_text(const char* whom, const std::exception_ptr& error,
                        const std::exception& why);

}  // namespace cohort::internal
