#include "cohort/collective/communication_thread.h"

#include "cohort/core/cpu/flush_denormals.h"
#include "cohort/core/program/start_thread.h"
#include "cohort/core/program/task.h"
#include "cohort/core/threads/thread_pool.h"

namespace cohort::collective {

CommunicationThread::~CommunicationThread() {
  drain();
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  posted_.notify_one();
  thread_.join();
}

void CommunicationThread::append(PostedCall& call) {
  call.next_ = nullptr;
  posts_.fetch_add(1);
  (last_ == nullptr ? first_ : last_->next_) = &call;
  last_ = &call;
}

void CommunicationThread::post(PostedCall& call) {
  {
    std::lock_guard lock(mutex_);
    if (!thread_.joinable()) {
      const auto start = [this, &task = internal::Task::current()] {
        const internal::ScopedTask for_task(task);
        work();
      };
      thread_ = internal::start_thread("for calls to other tasks", start);
    }
    append(call);
  }
  posted_.notify_one();
}

void CommunicationThread::post_before_drain(PostedCall& call) {
  std::lock_guard lock(mutex_);
  append(call);
}

void CommunicationThread::drain() {
  const uint64_t posts = posts_.load();
  if (done_.load() >= posts) return;
  Lock lock(mutex_);
  while (done_.load() < posts) {
    if (can_make()) {
      make_next(lock);
    } else {
      done_one_.wait(lock);
    }
  }
}

void CommunicationThread::make_next(Lock& lock) {
  PostedCall& call = *first_;
  first_ = call.next_;
  if (first_ == nullptr) last_ = nullptr;
  busy_ = true;
  lock.unlock();
  call.make(communicator_);
  lock.lock();
  busy_ = false;
  done_.fetch_add(1);
  done_one_.notify_all();
  if (first_ != nullptr) posted_.notify_one();  // who drains makes no more than it waits for
}

void CommunicationThread::work() {
  internal::set_thread_name("communication");
  // Denormals are flushed as on the threads of replicas: the same bits, whichever thread adds.
  const internal::ScopedFlushDenormals flush_denormals;
  Lock lock(mutex_);
  while (!stop_ || first_ != nullptr) {
    if (can_make()) {
      make_next(lock);
    } else {
      posted_.wait(lock);
    }
  }
}

}  // namespace cohort::collective
