// Why a program is left, for those who must pass it on. A strategy whose program ends by an exception
// has other tasks to tell; its destructor runs meanwhile and cannot see the exception, but whoever
// catches it can.
//
//   FailureFrame frame;                          // run_program
//   try {
//     program();                                 // a destructor: FailureFrame::current()->leave(me)
//   } catch (...) {
//     frame.caught(std::current_exception());    // me->on_failure(the exception)
//   }
#pragma once

#include <exception>
#include <memory>

#include "cohort/core/program/process.h"

namespace cohort::internal {

class FailureListener {
 public:
  virtual ~FailureListener() = default;
  // What ends the program. Null: something has caught the exception on its way, or took too long.
  virtual void on_failure(const std::exception_ptr& error) noexcept = 0;
};

// `listener` is told, as long as it lives, of what ends a program of the calling thread's task. It may
// be told more than once. Thread safety: any thread.
void add_failure_listener(std::weak_ptr<FailureListener> listener);

// On the stack of what catches all errors of a program.
// Thread safety: of its own thread; listeners are told on any.
class FailureFrame {
 public:
  FailureFrame();
  // Those that are still waiting are told that nothing is known.
  ~FailureFrame();
  FailureFrame(const FailureFrame&) = delete;
  FailureFrame& operator=(const FailureFrame&) = delete;

  // The calling thread's innermost; null: nothing will catch.
  static FailureFrame* current();

  // For a destructor that runs because of an exception: `listener` is told what it was by caught(), or
  // a fifth of a second later that nothing is known.
  // Errors: ResourceExhausted (no thread, no memory; the listener is told nothing).
  void leave(std::shared_ptr<FailureListener> listener);

  // Tells those that have left, and those of add_failure_listener.
  void caught(const std::exception_ptr& error) noexcept;

 private:
  class Leaving;

  FailureFrame* const outer_;
  HomePtr<Leaving> leaving_;  // null: none has left
};

}  // namespace cohort::internal
