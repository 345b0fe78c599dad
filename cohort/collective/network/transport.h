// How the tasks of a group move bytes between each other. Backends between processes implement it;
// TransportCommunicator makes a Communicator of it.
//
//   transport.expect(1, into, bytes);           // what task 1 sends next
//   transport.send(1, data, bytes);
//   const void* theirs = transport.receive(1, deadline);
//   transport.finish(deadline);                 // `data` may be written over
//
// What one task sends to another arrives in the order in which it was sent. Calls that start
// something do not wait, so that all tasks are served at once.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>

namespace cohort::collective {

// The size of the largest message.
inline constexpr size_t kMaxMessageBytes = size_t{2} << 20;

// Errors of every call but memory, is_late, fail and on_end: what has ended the group (see fail),
// Unavailable (a task was lost).
// Thread safety: one call at a time; memory, fail and on_end from any thread, also during a call.
class Transport {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  // Waits a moment rather than drop what was sent: the call to which it belongs has returned here,
  // but other tasks may still need it.
  virtual ~Transport() = default;

  // Memory that is sent without a copy. Freed with the transport.
  virtual char* memory(size_t bytes) = 0;

  // Starts to send at most kMaxMessageBytes, which stay as they are until finish or until the other
  // task is known to have them.
  virtual void send(int to, const void* data, size_t bytes) = 0;
  // Says what `from` sends next, after all that was expected before, and where it goes: to `into`,
  // or, where that is null, to memory of the transport. It may arrive before it is expected.
  virtual void expect(int from, void* into, size_t bytes) = 0;
  // Waits for the first of what is expected from `from`. Returns where it is (memory of the
  // transport is valid until the next receive from this task, or finish), or null if it has not
  // come by `deadline`. Whatever else can be sent or received goes on meanwhile: the other task may
  // wait for this one. Warns of a long wait, where it can (slow_wait.h).
  // Errors: also FailedPrecondition (a message of another size).
  virtual const void* receive(int from, Deadline deadline) = 0;
  // Whether the first of what is expected from `from` has not come yet, as far as is known.
  virtual bool is_late(int from) = 0;
  // Waits until all that was sent may be written over. Returns a task that has not taken what was
  // sent to it by `deadline`, or -1.
  virtual int finish(Deadline deadline) = 0;

  // Ends the group: waits, here and in all other tasks, and all later calls fail with `error`, that
  // of the first call. After each call no other thread writes to where messages were expected.
  virtual void fail(const std::exception_ptr& error) noexcept = 0;
  // Errors: what has ended the group.
  virtual void check() = 0;
  // `ended` is called on any thread when the group has ended; at once where it has. When on_end
  // returns, an earlier function does not run any more, and will not.
  virtual void on_end(std::function<void()> ended) = 0;
};

}  // namespace cohort::collective
