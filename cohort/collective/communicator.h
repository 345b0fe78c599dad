// What the tasks (processes) of a group exchange: the interface under which every backend slips.
//
// A rank is a task. A call brings one buffer for each local replica, or a single one where the task
// has already put its replicas' values together. Backends are dumb: they move and add numbers, and
// trust that all tasks make the same calls. CheckedCommunicator wraps any of them and holds that.
//
//   float values[3] = {1, 2, 3};
//   const Buffer mine{values, 3, float32};
//   communicator.all_reduce({&mine, 1}, {.name = "losses"})->wait(deadline);
#pragma once

#include <c10/core/Stream.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "cohort/core/error.h"
#include "cohort/core/tensor.h"

namespace cohort::collective {

using Deadline = std::chrono::steady_clock::time_point;

// Memory of the caller's, which must stay until the call's Work is done.
struct Buffer {
  void* data = nullptr;
  int64_t count = 0;  // elements
  DType dtype = float32;
  // Where `data` lies, and after which work of the device it may be read.
  c10::Stream stream{c10::Stream::DEFAULT, c10::Device(c10::kCPU)};

  int64_t bytes() const { return count * static_cast<int64_t>(c10::elementSize(dtype)); }
  char* at(int64_t element) const {
    return static_cast<char*>(data) + element * static_cast<int64_t>(c10::elementSize(dtype));
  }
};

struct CallOptions {
  // What the call is for, in errors; every task must use the same.
  std::string_view name;
  // What else must be equal on every task, in words: "float32 [3, 4]".
  std::string_view signature = {};
  // How long the call waits for the other tasks.
  std::chrono::nanoseconds timeout = std::chrono::minutes(10);
};

// A call that may still be going on.
class Work {
 public:
  virtual ~Work() = default;
  // Blocks until it is done. Errors: those of its call, DeadlineExceeded.
  virtual void wait(Deadline deadline) = 0;
  // What is put on `stream` from here on runs after the call. Does not block where the backend
  // works on the device.
  virtual void order_after(c10::Stream stream) = 0;
};

// Every call but rank, size, generation, buffer and abort is COLLECTIVE over the tasks: all make
// the same calls in one order. A call may block until all have come, or return before.
// Errors of every call (thrown by it or by wait): DeadlineExceeded (names the tasks that did not
// come), Unavailable (a task was lost), Aborted (a task has given up: says why). After any of them
// the communicator refuses all further calls with that error: the group must form again.
// Thread safety: one call at a time; abort from any thread.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Goes up each time the group forms again.
  virtual int64_t generation() const = 0;

  // Memory that this backend need not copy (shared, registered). Freed with the communicator.
  virtual Buffer buffer(int64_t bytes) = 0;

  // In place: each of the buffers, on every task, becomes the sum of all of them, added up in the
  // order of ranks. All have one count and dtype. Errors: also InvalidArgument (a dtype that cannot
  // be added).
  virtual std::unique_ptr<Work> all_reduce(std::span<const Buffer> buffers,
                                           const CallOptions& options) = 0;
  // As all_reduce, of which this task gets only its own part: elements [sum of counts before its
  // rank, + counts[rank]). The other parts are left undefined. `counts`: one for each rank.
  virtual std::unique_ptr<Work> reduce_scatter(std::span<const Buffer> buffers,
                                               std::span<const int64_t> counts,
                                               const CallOptions& options) = 0;
  // The reverse: each task brings its own part, and gets everybody's. A part is read from the first
  // buffer and written into all.
  virtual std::unique_ptr<Work> all_gather(std::span<const Buffer> buffers,
                                           std::span<const int64_t> counts,
                                           const CallOptions& options) = 0;
  // Every buffer becomes the first of task `root`.
  virtual std::unique_ptr<Work> broadcast(std::span<const Buffer> buffers, int root,
                                          const CallOptions& options) = 0;
  virtual void barrier(const CallOptions& options) = 0;

  // Ends what the group does: calls that wait, here and on the other tasks, and all later ones fail
  // with an Aborted that names this task and `reason`.
  virtual void abort(const std::string& reason) noexcept = 0;
};

// For backends whose calls return when they are done.
std::unique_ptr<Work> done_work();

// "task 1".
std::string task_name(int rank);

// A call and its wait.
void all_reduce(Communicator& communicator, const Buffer& buffer, const CallOptions& options);
void all_gather(Communicator& communicator, const Buffer& buffer, std::span<const int64_t> counts,
                const CallOptions& options);
void broadcast(Communicator& communicator, const Buffer& buffer, int root,
               const CallOptions& options);

}  // namespace cohort::collective
