#include "cohort/parameter_server/store/push_tokens.h"

#include <algorithm>
#include <utility>

#include "cohort/core/error.h"

namespace cohort::internal {

PushTokens::BegunPushes::iterator PushTokens::find(uint64_t token) {
  return std::find_if(begun_.begin(), begun_.end(),
                      [token](const Begun& one) { return one.token == token; });
}

std::optional<size_t> PushTokens::begin(uint64_t token) {
  if (token == 0) return 0;
  std::unique_lock lock(mutex_);
  const auto has_stopped = [&] {
    const auto there = find(token);
    return there == begun_.end() || !there->is_running;
  };
  if (!stopped_.wait_for(lock, patience_, has_stopped)) {
    throw UnavailableError(
        str("push ", token, " came again while it was being applied, which has not ended within ",
            patience_.count(), " ms: this ps task is overloaded, or was stopped meanwhile. ",
            "It is applied once however often it is sent: send it again"));
  }
  if (applied_.contains(token)) {
    ++repeated_;
    return std::nullopt;
  }
  if (const auto there = find(token); there != begun_.end()) {
    there->is_running = true;
    return there->next;
  }
  begun_.push_back({.token = token, .room = AppliedTokens::room_for(token)});
  return 0;
}

void PushTokens::end(uint64_t token) noexcept {
  if (token == 0) return;
  const std::lock_guard lock(mutex_);
  // Else all has been forgotten meanwhile.
  if (const auto there = find(token); there != begun_.end()) {
    applied_.add(std::move(there->room));
    begun_.erase(there);
  }
  stopped_.notify_all();
}

void PushTokens::stop(uint64_t token, size_t next) {
  if (token == 0) return;
  const std::lock_guard lock(mutex_);
  if (const auto there = find(token); there != begun_.end()) {
    there->next = next;
    there->is_running = false;
  }
  stopped_.notify_all();
}

void PushTokens::forget_below(uint64_t token) {
  const std::lock_guard lock(mutex_);
  applied_.forget_below(token);
  std::erase_if(begun_, [token](const Begun& one) { return !one.is_running && one.token < token; });
}

void PushTokens::forget_all() {
  const std::lock_guard lock(mutex_);
  applied_ = {};
  begun_.clear();
}

int64_t PushTokens::repeated() const {
  const std::lock_guard lock(mutex_);
  return repeated_;
}

}  // namespace cohort::internal
