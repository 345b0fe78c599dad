// Ctrl-C while something long runs: it ends after the step that it is in.
//
//   const InterruptScope scope;
//   while (work()) {
//     if (InterruptScope::requested()) throw InterruptedError("training was interrupted");
//   }
#pragma once

#include <string>

#include "cohort/core/error.h"
#include "cohort/core/export.h"

namespace cohort {

// run_program ends the program with 130, as the shell does after Ctrl-C.
class COHORT_API InterruptedError : public Error {
 public:
  explicit InterruptedError(const std::string& message) : Error(Code::kCancelled, message) {}
};

namespace internal {

// While one lives, the first SIGINT is a request; a second one does what it did before. A program's
// own handler is left alone: then nothing is ever requested. Several may live at once.
// Thread safety: any thread.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  static bool requested();
};

}  // namespace internal
}  // namespace cohort
