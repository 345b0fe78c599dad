#include "cohort/core/program/failure_frame.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/program/task.h"

namespace cohort::internal {
namespace {

using Listeners = std::vector<std::shared_ptr<FailureListener>>;

// Only destructors run between a throw and the catch of run_program. If a listener waits for longer
// than this, the program has caught the exception itself and goes on; other tasks wait for it all
// the same.
constexpr std::chrono::milliseconds kPatience{200};

thread_local FailureFrame* current_frame = nullptr;

struct Registration {
  const Task* task;
  std::weak_ptr<FailureListener> listener;
};

struct Registry {
  std::mutex mutex;
  std::vector<Registration> all;  // guarded by mutex
};

Registry& registry() {
  static Registry* const only = new Registry();  // strategies may outlive static objects
  return *only;
}

void tell(const Listeners& listeners, const std::exception_ptr& error) noexcept {
  for (const auto& listener : listeners) listener->on_failure(error);
}

Listeners registered() {
  Registry& known = registry();
  Listeners listeners;
  const std::lock_guard lock(known.mutex);
  for (const Registration& entry : known.all) {
    if (entry.task != &Task::current()) continue;
    if (auto listener = entry.listener.lock()) listeners.push_back(std::move(listener));
  }
  return listeners;
}

}  // namespace

void add_failure_listener(std::weak_ptr<FailureListener> listener) {
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  std::erase_if(known.all, [](const Registration& entry) { return entry.listener.expired(); });
  known.all.push_back({&Task::current(), std::move(listener)});
}

// The listeners that have left by an exception that nobody has caught yet, and a thread that ends
// their wait.
class FailureFrame::Leaving {
 public:
  Leaving() : timer_([this] { run(); }) {}
  ~Leaving() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    changed_.notify_all();
    timer_.join();
  }
  Leaving(const Leaving&) = delete;
  Leaving& operator=(const Leaving&) = delete;

  void add(std::shared_ptr<FailureListener> listener) {
    {
      const std::lock_guard lock(mutex_);
      listeners_.push_back(std::move(listener));
    }
    changed_.notify_all();
  }

  Listeners take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(listeners_, {});
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return closed_ || !listeners_.empty(); });
      changed_.wait_for(lock, kPatience, [this] { return closed_; });
      Listeners told = std::exchange(listeners_, {});
      lock.unlock();
      tell(told, nullptr);
      told.clear();  // the end of a group takes a while
      lock.lock();
      if (closed_ && listeners_.empty()) return;
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  Listeners listeners_;  // guarded by mutex_
  bool closed_ = false;  // guarded by mutex_
  std::thread timer_;    // the last member: it uses the others
};

FailureFrame::FailureFrame() : outer_(current_frame) { current_frame = this; }

FailureFrame::~FailureFrame() { current_frame = outer_; }

FailureFrame* FailureFrame::current() { return current_frame; }

void FailureFrame::leave(std::shared_ptr<FailureListener> listener) {
  try {
    if (leaving_ == nullptr) leaving_ = HomePtr<Leaving>(new Leaving());
    leaving_->add(std::move(listener));
  } catch (const std::system_error& error) {
    throw ResourceExhaustedError(
        str("no thread to wait for what ended the program: ", error.what()));
  }
}

void FailureFrame::caught(const std::exception_ptr& error) noexcept {
  try {
    if (leaving_ != nullptr) tell(leaving_->take(), error);
    tell(registered(), error);
  } catch (...) {  // no memory for the list: they learn by the end of the process
  }
}

}  // namespace cohort::internal
