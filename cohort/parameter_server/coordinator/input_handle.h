// What the program and closures hold of something that every worker has made for them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace cohort::internal {

// The workers let go of an input with the last handle of its number. Thread safety: any thread.
class InputHandle {
 public:
  // maker: the coordinator whose workers know the number. `let_go` must not wait, and may be called
  // with any lock held.
  InputHandle(uint64_t id, std::weak_ptr<const void> maker, std::function<void(uint64_t id)> let_go)
      : id_(id), maker_(std::move(maker)), let_go_(std::move(let_go)) {}
  ~InputHandle() { let_go_(id_); }
  InputHandle(const InputHandle&) = delete;
  InputHandle& operator=(const InputHandle&) = delete;

  uint64_t id() const { return id_; }
  bool is_made_by(const std::weak_ptr<const void>& coordinator) const {
    return !maker_.owner_before(coordinator) && !coordinator.owner_before(maker_);
  }

 private:
  const uint64_t id_;
  const std::weak_ptr<const void> maker_;
  const std::function<void(uint64_t id)> let_go_;
};

using InputHandlePtr = std::shared_ptr<const InputHandle>;

}  // namespace cohort::internal
