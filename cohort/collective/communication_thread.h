// The thread that makes a task's calls to other tasks while its replicas compute.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "cohort/collective/communicator.h"

namespace cohort::collective {

// A call that a CommunicationThread makes in one turn. It belongs to the code that posts it, and
// must stay valid until it is done.
class PostedCall {
 public:
  virtual ~PostedCall() = default;
  // Makes the call, and keeps its errors for the code that posted it.
  virtual void make(Communicator& communicator) noexcept = 0;

 private:
  friend class CommunicationThread;
  PostedCall* next_ = nullptr;
};

// Makes calls one at a time, in the order in which they were posted. They run on its own thread, or
// on the thread that waits for them, so that a call that is waited for at once costs no change of
// threads. Its thread starts with the first call, acts for the task that posts it, and sleeps while
// there is no call.
// Thread safety: any thread. Not destroyed in a child of fork (HomePtr).
class CommunicationThread {
 public:
  // communicator: must outlive it.
  explicit CommunicationThread(Communicator& communicator) : communicator_(communicator) {}
  // Waits until everything is done.
  ~CommunicationThread();
  CommunicationThread(const CommunicationThread&) = delete;
  CommunicationThread& operator=(const CommunicationThread&) = delete;

  // These two do not allocate. A call may be posted again once it is done.
  // Errors: ResourceExhausted (no thread to begin with: the call is not posted).
  void post(PostedCall& call);
  // Posts a call, but needs no thread and wakes none: for the last call before somebody drains.
  void post_before_drain(PostedCall& call);
  // Returns when everything that was posted before is done, however long its calls may take. Makes
  // those that the thread has not begun. Costs one load if there are none.
  void drain();

 private:
  using Lock = std::unique_lock<std::mutex>;

  void append(PostedCall& call);
  bool can_make() const { return first_ != nullptr && !busy_; }
  void make_next(Lock& lock);
  void work();

  Communicator& communicator_;
  std::mutex mutex_;
  std::condition_variable posted_;    // for the thread
  std::condition_variable done_one_;  // for those who drain
  PostedCall* first_ = nullptr;       // guarded by mutex_
  PostedCall* last_ = nullptr;        // guarded by mutex_
  bool busy_ = false;                 // a call is being made; guarded by mutex_
  bool stop_ = false;                 // guarded by mutex_
  std::thread thread_;                // guarded by mutex_
  std::atomic<uint64_t> posts_{0};
  std::atomic<uint64_t> done_{0};
};

}  // namespace cohort::collective
