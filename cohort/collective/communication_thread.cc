#include "cohort/collective/communication_thread.h"

#include <utility>

#include "cohort/core/flush_denormals.h"
#include "cohort/core/task.h"
#include "cohort/core/thread_pool.h"

namespace cohort::collective {

CommunicationThread::~CommunicationThread() {
  if (!thread_.joinable()) return;
  if (!home_.is_here()) {  // a child of fork, where there is no such thread
    thread_.detach();
    return;
  }
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  posted_.notify_one();
  thread_.join();
}

void CommunicationThread::post(PostedCall& call) {
  call.next_ = nullptr;
  posts_.fetch_add(1);
  {
    std::lock_guard lock(mutex_);
    (last_ == nullptr ? first_ : last_->next_) = &call;
    last_ = &call;
    if (!thread_.joinable()) {
      thread_ = std::thread([this, &task = internal::Task::current()] {
        const internal::ScopedTask for_task(task);
        work();
      });
    }
  }
  posted_.notify_one();
}

void CommunicationThread::drain() {
  const uint64_t posts = posts_.load();
  progress_.wait([&] { return done_.load() >= posts; }, std::chrono::nanoseconds(0),
                 internal::WaitPoint::kForever);
}

void CommunicationThread::work() {
  internal::set_thread_name("communication");
  // As on the threads of replicas: the same bits, whichever thread adds.
  const internal::ScopedFlushDenormals flush_denormals;
  std::unique_lock lock(mutex_);
  while (true) {
    posted_.wait(lock, [&] { return first_ != nullptr || stop_; });
    if (first_ == nullptr) return;
    PostedCall& call = *first_;
    first_ = call.next_;
    if (first_ == nullptr) last_ = nullptr;
    lock.unlock();
    call.make(communicator_);
    done_.fetch_add(1);
    progress_.notify();
    lock.lock();
  }
}

}  // namespace cohort::collective
