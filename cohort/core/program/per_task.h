// State that exists once for each task for which this process's threads act.
//
//   PerTask<LocalReplicas> replicas([&] { return std::make_unique<LocalReplicas>(devices); });
//   replicas.get().run(...);   // those of the calling thread's task
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "cohort/core/program/task.h"

namespace cohort::internal {

// `make` makes the object of the current task: the first one at once, another one when its task
// first asks. An object stays at its address as long as the PerTask lives.
// Thread safety: any thread. Finding an object that exists takes no lock and allocates nothing.
template <class T>
class PerTask {
 public:
  using Make = std::function<std::unique_ptr<T>()>;

  // Errors: those of `make`.
  explicit PerTask(Make make) : make_(std::move(make)), first_(make_()) {}
  ~PerTask() {
    for (Entry* entry = first_.next; entry != nullptr;) {
      delete std::exchange(entry, entry->next.load());
    }
  }
  PerTask(const PerTask&) = delete;
  PerTask& operator=(const PerTask&) = delete;

  // The current task's. Errors: those of `make`; the next call tries again.
  T& get() const {
    Entry* entry = &first_;
    if (find(entry)) return *entry->object;
    const std::lock_guard lock(mutex_);
    if (find(entry)) return *entry->object;
    auto* made = new Entry(make_());
    entry->next = made;
    return *made->object;
  }

 private:
  struct Entry {
    explicit Entry(std::unique_ptr<T> made) : object(std::move(made)) {}

    const Task& task = Task::current();
    const std::unique_ptr<T> object;
    std::atomic<Entry*> next{nullptr};
  };

  // Moves on from `entry` to the current task's entry, or to the last one there is.
  static bool find(Entry*& entry) {
    const Task& task = Task::current();
    while (&entry->task != &task) {
      Entry* const next = entry->next;
      if (next == nullptr) return false;
      entry = next;
    }
    return true;
  }

  const Make make_;
  mutable Entry first_;
  mutable std::mutex mutex_;  // for adding entries
};

}  // namespace cohort::internal
