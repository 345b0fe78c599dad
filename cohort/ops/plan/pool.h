// Objects that are used again and again, by one user at a time.
#pragma once

#include <iterator>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace cohort::internal::plan {

// T is expensive to make, and warm in the cache of the thread that used it last.
// Thread safety: any thread.
template <class T>
class Pool {
  // More are the replicas of few programs.
  static constexpr size_t kMost = 16;

 public:
  using Objects = std::vector<std::pair<std::thread::id, std::unique_ptr<T>>>;

  Pool() { free_.reserve(kMost); }

  // One that is free, the calling thread's last one where there is a choice; or make()'s.
  template <class Make>
  std::unique_ptr<T> take(const Make& make) {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        size_t found = free_.size() - 1;
        for (size_t i = 0; i < free_.size(); ++i) {
          if (free_[i].first == std::this_thread::get_id()) found = i;
        }
        std::swap(free_[found], free_.back());
        std::unique_ptr<T> taken = std::move(free_.back().second);
        free_.pop_back();
        return taken;
      }
    }
    return make();
  }

  // Asks for no memory.
  void give_back(std::unique_ptr<T> object) noexcept {
    const std::lock_guard lock(mutex_);
    if (keeps_ && free_.size() < kMost) {
      free_.emplace_back(std::this_thread::get_id(), std::move(object));
    }
  }

  // Keeps what is given back from here on, as at the beginning.
  void keep() {
    const std::lock_guard lock(mutex_);
    keeps_ = true;
  }
  // Returns those that are free, which the caller destroys where nobody waits for it.
  [[nodiscard]] Objects keep_none() {
    const std::lock_guard lock(mutex_);
    keeps_ = false;
    Objects given(std::make_move_iterator(free_.begin()), std::make_move_iterator(free_.end()));
    free_.clear();
    return given;
  }

 private:
  std::mutex mutex_;
  bool keeps_ = true;
  Objects free_;
};

}  // namespace cohort::internal::plan
