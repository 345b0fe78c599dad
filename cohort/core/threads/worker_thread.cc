#include "cohort/core/threads/worker_thread.h"

#include <pthread.h>

#include <utility>

#include "cohort/core/program/start_thread.h"
#include "cohort/core/threads/synchronized.h"

namespace cohort::internal {

struct WorkerThread::State {
  struct Work {
    Call next;
    bool is_under_way = false;
    std::exception_ptr error;
    bool ends = false;
    std::function<void(const std::exception_ptr&)> left_to;  // the owner no longer waits
  };

  void run();
  // Empty: the thread ends.
  Call take_next();
  void end_call(const std::exception_ptr& error);

  Synchronized<Work> work;
};

WorkerThread::Call WorkerThread::State::take_next() {
  auto now = work.lock();
  now.wait([&] { return now->ends || now->next; });
  return std::exchange(now->next, nullptr);
}

void WorkerThread::State::end_call(const std::exception_ptr& error) {
  auto now = work.change();
  now->is_under_way = false;
  now->error = error;
  if (now->left_to) now->left_to(error);
}

void WorkerThread::State::run() {
  while (const Call call = take_next()) {
    std::exception_ptr error;
    try {
      call();
    } catch (...) {
      error = std::current_exception();
    }
    end_call(error);
  }
}

WorkerThread::WorkerThread(std::string_view purpose, const char* name)
    : state_(std::make_shared<State>()), thread_(start_thread(purpose, [state = state_, name] {
        ::pthread_setname_np(::pthread_self(), name);
        state->run();
      })) {}

WorkerThread::~WorkerThread() {
  if (!thread_.joinable()) return;  // left
  state_->work.change()->ends = true;
  thread_.join();
}

void WorkerThread::start(Call call) {
  auto work = state_->work.change();
  work->next = std::move(call);
  work->is_under_way = true;
  work->error = nullptr;
}

void WorkerThread::wait() {
  auto work = state_->work.lock();
  work.wait([&] { return !work->is_under_way; });
  if (work->error) std::rethrow_exception(work->error);
}

bool WorkerThread::wait_until(Clock::time_point deadline) {
  auto work = state_->work.lock();
  return work.wait_until(deadline, [&] { return !work->is_under_way; });
}

std::exception_ptr WorkerThread::take_error() {
  return std::exchange(state_->work.lock()->error, nullptr);
}

void WorkerThread::leave(std::function<void(const std::exception_ptr&)> ended) {
  thread_.detach();
  std::exception_ptr error;
  {
    auto work = state_->work.change();
    work->ends = true;
    if (work->is_under_way) {
      work->left_to = std::move(ended);
      return;
    }
    error = work->error;
  }
  ended(error);
}

}  // namespace cohort::internal
