// A value that is made when it is first asked for.
//
//   Lazy<std::string> name;
//   name.get([] { return unique_name(); });     // made by the first who asks, kept for all others
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <utility>

namespace cohort::internal {

// Thread safety: any thread. Variables that are built in a step are BuildOnce's: replicas meet
// there.
template <class T>
class Lazy {
 public:
  Lazy() = default;
  // Begins with a value that is known from the start, if there is one.
  explicit Lazy(std::optional<T> value) : value_(std::move(value)), made_(value_.has_value()) {}

  // Returns the value. If nobody has made it yet, `make` makes it; `make` must not ask for it
  // again. If `make` throws, the value stays unmade.
  // Errors: those of `make`.
  template <class Make>
  const T& get(const Make& make) const {
    if (!made_.load(std::memory_order_acquire)) {
      const std::lock_guard lock(mutex_);
      if (!value_) value_ = make();
      made_.store(true, std::memory_order_release);
    }
    return *value_;
  }
  // Replaces the value. Nobody may be reading the old one at this moment.
  void set(T value) {
    const std::lock_guard lock(mutex_);
    value_ = std::move(value);
    made_.store(true, std::memory_order_release);
  }
  // nullptr where it was not made.
  const T* get_if() const { return made_.load(std::memory_order_acquire) ? &*value_ : nullptr; }

 private:
  mutable std::mutex mutex_;
  mutable std::optional<T> value_;  // guarded by mutex_ until made_
  mutable std::atomic<bool> made_{false};
};

}  // namespace cohort::internal
