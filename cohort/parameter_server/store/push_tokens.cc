#include "cohort/parameter_server/store/push_tokens.h"

#include <algorithm>

namespace cohort::internal {

PushTokens::BegunPushes::iterator PushTokens::find(uint64_t token) {
  return std::find_if(begun_.begin(), begun_.end(),
                      [token](const Begun& one) { return one.token == token; });
}

std::optional<size_t> PushTokens::begin(uint64_t token) {
  if (token == 0) return 0;
  std::unique_lock lock(mutex_);
  stopped_.wait(lock, [&] { return find(token) == begun_.end() || !find(token)->is_running; });
  if (applied_.contains(token)) {
    ++repeated_;
    return std::nullopt;
  }
  if (const auto there = find(token); there != begun_.end()) {
    there->is_running = true;
    return there->next;
  }
  begun_.push_back({.token = token});
  return 0;
}

void PushTokens::end(uint64_t token) {
  if (token == 0) return;
  const std::lock_guard lock(mutex_);
  applied_.add(token);
  std::erase_if(begun_, [token](const Begun& one) { return one.token == token; });
  stopped_.notify_all();
}

void PushTokens::stop(uint64_t token, size_t next) {
  if (token == 0) return;
  const std::lock_guard lock(mutex_);
  if (const auto there = find(token); there != begun_.end()) {
    *there = {.token = token, .next = next, .is_running = false};
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
