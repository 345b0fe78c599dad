// The ranks of a group of NCCL that are this process's.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/DeviceGuard.h>

#include <mutex>
#include <span>
#include <vector>

#include "cohort/collective/buffer.h"
#include "cohort/collective/nccl/nccl_library.h"

namespace cohort::collective::nccl {

// A call that goes on is no error: communicators do not block.
// Errors: Unavailable ("NCCL cannot WHAT: ...").
void check(Result result, const char* what);

// The stream as CUDA knows it.
// Errors: Unimplemented (libtorch does not tell).
void* raw_stream(const c10::Stream& stream);

// One rank for each device. They end together.
// Thread safety: any thread.
class NcclRanks {
 public:
  // Starts to connect devices[i] as rank `first` + i of `ranks`; are_ready() tells the end.
  // Errors: those of are_ready.
  NcclRanks(const UniqueId& id, int ranks, int first, const std::vector<c10::Device>& devices);
  ~NcclRanks() { abort(); }
  NcclRanks(const NcclRanks&) = delete;
  NcclRanks& operator=(const NcclRanks&) = delete;

  size_t size() const { return size_; }

  // call(buffer, communicator of its rank) for each of as many buffers as there are ranks; what is
  // called begins together. Does not block. Errors: Aborted (they have ended), those of the call.
  template <class Fn>
  void call(const char* name, std::span<const Buffer> buffers, Fn call) const {
    const std::lock_guard lock(mutex_);
    check_not_ended();
    CallGroup together(name);
    for (size_t i = 0; i < buffers.size(); ++i) {
      const c10::DeviceGuard guard(buffers[i].stream.device());
      call(buffers[i], all_[i]);
    }
    together.end();
  }

  // Whether nothing is left to be started. Errors: Aborted (they have ended), Unavailable,
  // FailedPrecondition (while they connect: two ranks on one device).
  bool are_ready() const;

  void abort() noexcept;

 private:
  // Calls of NCCL that begin together, when end() is called. If an exception comes before it, the
  // calls made until then begin, too.
  class CallGroup {
   public:
    explicit CallGroup(const char* what) : what_(what) { check(library().group_start(), what); }
    ~CallGroup() {
      if (!has_ended_) library().group_end();
    }
    CallGroup(const CallGroup&) = delete;
    CallGroup& operator=(const CallGroup&) = delete;

    void end() {
      has_ended_ = true;
      check(library().group_end(), what_);
    }

   private:
    const char* const what_;
    bool has_ended_ = false;
  };

  void check_not_ended() const;

  const size_t size_;
  mutable std::mutex mutex_;
  std::vector<Comm> all_;  // guarded by mutex_; none once they have ended
};

}  // namespace cohort::collective::nccl
