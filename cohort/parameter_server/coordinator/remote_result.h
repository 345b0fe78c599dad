// What a scheduled function will have returned: the state behind coordinator::RemoteValue.
#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cohort/core/function_ref.h"
#include "cohort/core/structure/structure.h"
#include "cohort/core/threads/synchronized.h"

namespace cohort::internal {

enum class RemoteStatus { kNotReady, kAborted, kReady };

// What failed first where functions take one another's results: its text, and how many of them lie
// between.
struct RootFailure {
  std::string text;
  size_t between = 0;
};

// How a call that waits for a result tells of it, as only who will give the result can.
struct ResultWait {
  std::string what;                       // "fetch of 'step' (closure 3)"
  std::chrono::nanoseconds report_after;  // report() is called each time that this has passed
  std::function<void(const std::string& what, std::chrono::steady_clock::time_point began)> report;
  std::function<std::string()> state;  // what the result waits for
};

// Thread safety: any thread.
class RemoteResult : public std::enable_shared_from_this<RemoteResult> {
 public:
  RemoteResult() = default;
  RemoteResult(const RemoteResult&) = delete;
  RemoteResult& operator=(const RemoteResult&) = delete;

  // These end the wait of all who ask. Only the first has an effect.
  void set(Structure value);
  // The function's own error, or Cancelled.
  void fail(std::exception_ptr error);
  // Because an argument failed, which had failed for this reason.
  void fail(std::exception_ptr error, RootFailure root);

  // `call` is called once, when it has ended, by the thread that ends it; at once if it has. If it
  // ends others, what waits for these is called when it has returned: a chain of functions may be
  // longer than the stack is deep.
  void on_end(std::function<void(const RemoteResult&)> call);

  // `make` and what it makes are called by those who wait, without a lock: most results are there
  // before anybody does.
  void describe(std::function<ResultWait()> make);
  RemoteStatus status() const;
  // The first failure of a chain, of a result that has failed.
  RootFailure root() const;
  // Waits for the function to end. Errors: that with which it failed, Cancelled (it will not run),
  // DeadlineExceeded (says what it waited for, by describe(): else `what`).
  Structure get(std::chrono::steady_clock::time_point deadline, const std::string& what) const;

 private:
  struct State {
    bool is_ended = false;
    std::exception_ptr error;  // null: value counts
    RootFailure root;          // no text: the error is the first
    Structure value;
    std::function<ResultWait()> make_wait;
    std::vector<std::function<void(const RemoteResult&)>> on_end;
  };

  void end(FunctionRef<void(State&)> with);

  Synchronized<State> state_;
};

}  // namespace cohort::internal
