// How the tasks (processes) of a group exchange values: the interface that every backend
// implements.
//
// A rank is a task. A call passes one buffer per local replica, or a single one if the task has
// already combined its replicas' values. Backends only move and add numbers, and trust that all
// tasks make the same calls. CheckedCommunicator wraps any backend and checks this; a backend whose
// tasks meet before anything moves can spare it a round (see compares_fingerprints).
//
//   float values[3] = {1, 2, 3};
//   const Buffer mine{values, 3, float32};
//   communicator.all_reduce({&mine, 1}, {.name = "losses"})->wait(deadline);
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/collective/buffer.h"
#include "cohort/core/error.h"

namespace cohort::collective {

using Deadline = std::chrono::steady_clock::time_point;

class CallPlan;
class GatheredBytes;
class SumDivision;

struct CallOptions {
  // The purpose of the call, for errors; every task must pass the same.
  std::string_view name;
  // What else must be the same on every task, as text: "float32 [3, 4]".
  std::string_view signature = {};
  // How long the call waits for the other tasks.
  std::chrono::nanoseconds timeout = std::chrono::minutes(10);
  // The plan whose next call this is; null if it is of none. See call_plan.h.
  CallPlan* plan = nullptr;
  // Set by CheckedCommunicator for backends that compare: a number that is the same on every task
  // if and only if the tasks make the same call. 0: there is nothing to compare.
  uint64_t fingerprint = 0;
};

// Thrown on every task by a backend that compares fingerprints, where they differ.
class DifferentCallsError : public FailedPreconditionError {
 public:
  using FailedPreconditionError::FailedPreconditionError;
};

// A call that may still be in progress.
class Work {
 public:
  virtual ~Work() = default;
  // Blocks until the call is done. Errors: those of its call, DeadlineExceeded.
  virtual void wait(Deadline deadline) = 0;
  // Work that is queued on `stream` from here on runs after the call. Does not block if the backend
  // works on the device.
  virtual void order_after(c10::Stream stream) = 0;
};

// Every call except rank, size, generation, buffer and abort is COLLECTIVE over the tasks: all
// tasks make the same calls in the same order. A call may block until all tasks have made it, or
// return earlier. Errors of every call (thrown by the call or by wait): DeadlineExceeded (names the
// tasks that did not arrive), Unavailable (a task was lost), that of a task that has given up (see
// abort). After any of these the communicator refuses all further calls with the same error: the
// group must form again.
// Thread safety: one call at a time; buffer and abort from any thread, also during a call.
class Communicator : public BufferSource {
 public:
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Increases each time the group forms again.
  virtual int64_t generation() const = 0;
  // The name of the task of this rank in errors: "task 1", or "/job:worker/task:1".
  virtual std::string task_name(int rank) const;

  // Whether a call to which no task brings more than `bytes` (a barrier: 0) compares
  // CallOptions::fingerprint of all tasks before any buffer has changed, and throws
  // DifferentCallsError on every task if they are not all the same; also where other tasks make
  // another call for which this holds. The communicator can be used again afterwards. For other
  // calls CheckedCommunicator sends the fingerprints by a call of its own.
  virtual bool compares_fingerprints(int64_t /*bytes*/) const { return false; }

  // Whether its calls take buffers in the memory of this device.
  virtual bool works_on(c10::Device device) const { return device.is_cpu(); }

  // In place: each of the buffers, on every task, becomes the sum of all of them, added in the
  // order of ranks. All have the same count and dtype.
  // Errors: also InvalidArgument (a dtype that cannot be added).
  virtual std::unique_ptr<Work> all_reduce(std::span<const Buffer> buffers,
                                           const CallOptions& options) = 0;
  // How the replicas of the group are divided among its tasks, which all_reduce_parts needs. Once,
  // before its first call; not COLLECTIVE, but the same on every task.
  virtual void use_division(std::shared_ptr<const SumDivision> division);
  // Sums by the tree over all replicas, so that the division changes no bit. This task brings a
  // value for each of its parts (SumDivision::own_parts), of parts.count elements each, one after
  // another at parts.data. In place: on every task the first becomes the sum of those of all tasks;
  // the contents of the others are undefined afterwards.
  // Errors: also InvalidArgument (a dtype that cannot be added).
  virtual void all_reduce_parts(const Buffer& parts, const CallOptions& options);
  // Sums like all_reduce, but this task gets only its own part of the sum: counts[rank] elements,
  // which begin after the parts of all lower ranks. The contents of the other parts are undefined
  // afterwards. `counts` has one entry per rank.
  virtual std::unique_ptr<Work> reduce_scatter(std::span<const Buffer> buffers,
                                               std::span<const int64_t> counts,
                                               const CallOptions& options) = 0;
  // The reverse: each task passes its own part and gets the parts of all. A part is read from the
  // first buffer and written into all buffers.
  virtual std::unique_ptr<Work> all_gather(std::span<const Buffer> buffers,
                                           std::span<const int64_t> counts,
                                           const CallOptions& options) = 0;
  // Every buffer, on every task, gets the contents of the first buffer of task `root`.
  virtual std::unique_ptr<Work> broadcast(std::span<const Buffer> buffers, int root,
                                          const CallOptions& options) = 0;
  virtual void barrier(const CallOptions& options) = 0;
  // Each task brings as many bytes as it likes, and sees those of all: where they are, if the
  // backend shares memory and they lie in memory of buffer(). They stay until this task's next
  // gather_bytes, and `mine` must not change before that has returned: until then others may still
  // read it.
  virtual void gather_bytes(std::span<const char> mine, GatheredBytes& all,
                            const CallOptions& options);

  // For the thread of a call that waits elsewhere, for a device: throws what has ended the group,
  // or Unavailable where a task is lost, as far as this task can know without the others.
  virtual void check_alive() {}

  // Ends the work of the group: waiting calls, here and on the other tasks, and all later calls
  // fail with an error of `reason`'s class that names this task, or the one that `reason` names,
  // and says what `reason` says. Only the first call of a group has an effect.
  virtual void abort(const std::exception_ptr& reason) noexcept = 0;

 protected:
  // What use_division has got.
  const SumDivision& division() const { return *division_; }

 private:
  std::shared_ptr<const SumDivision> division_;
  std::vector<char> gathered_parts_;  // kept for its memory
};

// A finished Work, for backends whose calls return when they are done.
std::unique_ptr<Work> done_work();

// The error that the group gets when `task` gives up for this reason. It has the reason's class. If
// the reason reports another task's fault, it is the reason itself.
std::exception_ptr given_up(const std::string& task, const std::exception_ptr& reason);

// These make the call and wait for it.
void all_reduce(Communicator& communicator, const Buffer& buffer, const CallOptions& options);
void all_gather(Communicator& communicator, const Buffer& buffer, std::span<const int64_t> counts,
                const CallOptions& options);
void broadcast(Communicator& communicator, const Buffer& buffer, int root,
               const CallOptions& options);

}  // namespace cohort::collective
