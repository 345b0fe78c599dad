// Finds errors that mean that a ps task may be lost, and says what a coordinator says of one that
// is.
#pragma once

#include <cstdint>
#include <exception>
#include <string>

#include "cohort/core/program/task_id.h"

namespace cohort::internal {

struct LostPs {
  TaskId task = {};
  std::string address = "";
  int64_t generation = 0;       // the coordinator's
  std::string checkpoint = "";  // the program's last; empty: none
  std::string told = "";        // by the task of its own failure; empty: nothing
};

// A PSUnavailableError: all that is known, and what to do. `why`: how it was noticed.
std::exception_ptr lost_ps_error(const LostPs& ps, const std::string& why);

// The ps task that does not answer, by the error of a call to it or of a closure; -1: none.
int unanswering_ps(const std::exception_ptr& error, int num_ps);

}  // namespace cohort::internal
