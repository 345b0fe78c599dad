// Notices fork(). A child has none of its parent's threads, and locks that those held stay locked
// for ever, so that the child would wait for them in vain. Children that call exec or exit are not
// affected.
#pragma once

#include <cstdint>
#include <memory>

namespace cohort::internal {

// The number of forks between the start of the program and this process, counted from the first
// call on. Thread safety: any thread.
uint64_t process_epoch();

// The process in which an object was made. Thread safety: immutable.
class HomeProcess {
 public:
  HomeProcess() : epoch_(process_epoch()) {}

  bool is_here() const { return epoch_ == process_epoch(); }
  // Errors: FailedPrecondition (this is a child of that process; `what` names the object).
  void check(const char* what) const {
    if (!is_here()) throw_forked(what);
  }

 private:
  [[noreturn]] static void throw_forked(const char* what);

  uint64_t epoch_;
};

// Owns an object with threads. A child of the process never destroys it: joining the threads, and
// even destroying a condition variable that they wait for, would never end.
template <class T>
struct HomeDelete {
  void operator()(T* object) const {
    if (home.is_here()) delete object;
  }
  HomeProcess home;
};
template <class T>
using HomePtr = std::unique_ptr<T, HomeDelete<T>>;

}  // namespace cohort::internal
