// Tells which error ends a program, to those who must pass it on. A strategy whose program ends by
// an exception has other tasks to tell. Its destructor runs while the exception is on its way and
// cannot see it, but the code that catches it can.
//
//   FailureFrame frame;                        // run_program
//   try {
//     program();                               // a destructor: FailureFrame::current()->leave(me)
//   } catch (...) {
//     frame.caught(std::current_exception());  // me->on_failure(the exception)
//   }
#pragma once

#include <exception>
#include <memory>

#include "cohort/core/program/process.h"

namespace cohort::internal {

class FailureListener {
 public:
  virtual ~FailureListener() = default;
  // Called with the error that ends the program. Null: something has caught the exception on its
  // way, or took too long.
  virtual void on_failure(const std::exception_ptr& error) noexcept = 0;
};

// Tells `listener`, as long as it lives, which error ends a program of the calling thread's task.
// It may be told more than once.
// Thread safety: any thread.
void add_failure_listener(std::weak_ptr<FailureListener> listener);

// Lives on the stack of the function that catches all errors of a program.
// Thread safety: the frame belongs to its thread; listeners are told on any.
class FailureFrame {
 public:
  FailureFrame();
  // Tells the listeners that still wait that nothing is known.
  ~FailureFrame();
  FailureFrame(const FailureFrame&) = delete;
  FailureFrame& operator=(const FailureFrame&) = delete;

  // The innermost frame of the calling thread; null: nothing will catch errors.
  static FailureFrame* current();

  // To be called by a destructor that runs because of an exception. caught() tells `listener` which
  // one it was; if caught() has not come after a fifth of a second, `listener` is told that nothing
  // is known.
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
