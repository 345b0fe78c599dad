#include "cohort/parameter_server/store/push_tokens.h"

#include <algorithm>
#include <utility>

#include "cohort/core/error.h"

namespace cohort::internal {

std::vector<PushTokens::Begun>::iterator PushTokens::Pushes::find(uint64_t token) {
  return std::find_if(begun.begin(), begun.end(),
                      [token](const Begun& one) { return one.token == token; });
}

std::optional<size_t> PushTokens::begin(uint64_t token) {
  if (token == 0) return 0;
  auto pushes = pushes_.lock();
  const auto has_stopped = [&] {
    const auto there = pushes->find(token);
    return there == pushes->begun.end() || !there->is_running;
  };
  if (!pushes.wait_until(std::chrono::steady_clock::now() + patience_, has_stopped)) {
    throw UnavailableError(
        str("push ", token, " came again while it was being applied, which has not ended within ",
            patience_.count(), " ms: this ps task is overloaded, or was stopped meanwhile. ",
            "It is applied once however often it is sent: send it again"));
  }
  if (pushes->applied.contains(token)) {
    ++pushes->repeated;
    return std::nullopt;
  }
  if (const auto there = pushes->find(token); there != pushes->begun.end()) {
    there->is_running = true;
    return there->next;
  }
  pushes->begun.push_back({.token = token, .room = AppliedTokens::room_for(token)});
  return 0;
}

void PushTokens::end(uint64_t token) noexcept {
  if (token == 0) return;
  const auto pushes = pushes_.change();
  // Else all has been forgotten meanwhile.
  if (const auto there = pushes->find(token); there != pushes->begun.end()) {
    pushes->applied.add(std::move(there->room));
    pushes->begun.erase(there);
  }
}

void PushTokens::stop(uint64_t token, size_t next) {
  if (token == 0) return;
  const auto pushes = pushes_.change();
  if (const auto there = pushes->find(token); there != pushes->begun.end()) {
    there->next = next;
    there->is_running = false;
  }
}

void PushTokens::forget_below(uint64_t token) {
  const auto pushes = pushes_.lock();
  pushes->applied.forget_below(token);
  std::erase_if(pushes->begun,
                [token](const Begun& one) { return !one.is_running && one.token < token; });
}

void PushTokens::forget_all() {
  const auto pushes = pushes_.change();
  pushes->applied = {};
  pushes->begun.clear();
}

int64_t PushTokens::repeated() const {
  const auto pushes = pushes_.lock();
  return pushes->repeated;
}

}  // namespace cohort::internal
