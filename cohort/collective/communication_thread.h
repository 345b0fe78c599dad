// The thread that makes a task's calls to other tasks while its replicas compute.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "cohort/collective/communicator.h"
#include "cohort/core/process.h"
#include "cohort/core/wait_point.h"

namespace cohort::collective {

// What a CommunicationThread does in one turn. Belongs to who posts it, and must stay valid until
// it is done.
class PostedCall {
 public:
  virtual ~PostedCall() = default;
  // Keeps its errors for who posted it.
  virtual void make(Communicator& communicator) noexcept = 0;

 private:
  friend class CommunicationThread;
  PostedCall* next_ = nullptr;
};

// Makes calls one at a time, in the order in which they were posted. The thread starts with the
// first of them, works for the task of who posts it, and sleeps while there is none.
// Thread safety: any thread.
class CommunicationThread {
 public:
  // communicator: must outlive it.
  explicit CommunicationThread(Communicator& communicator) : communicator_(communicator) {}
  // Waits until everything is done.
  ~CommunicationThread();
  CommunicationThread(const CommunicationThread&) = delete;
  CommunicationThread& operator=(const CommunicationThread&) = delete;

  // Does not allocate. A call may be posted again once it is done.
  void post(PostedCall& call);
  // Waits until everything that was posted before is done: as long as its calls may take. A load
  // where it is.
  void drain();

 private:
  void work();

  Communicator& communicator_;
  const internal::HomeProcess home_;
  std::mutex mutex_;
  std::condition_variable posted_;
  PostedCall* first_ = nullptr;  // guarded by mutex_
  PostedCall* last_ = nullptr;   // guarded by mutex_
  bool stop_ = false;            // guarded by mutex_
  std::thread thread_;           // guarded by mutex_
  std::atomic<uint64_t> posts_{0};
  std::atomic<uint64_t> done_{0};
  internal::WaitPoint progress_;
};

}  // namespace cohort::collective
