// Exactly once: which pushes have been applied, and how far those have come that have not been
// applied whole.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "cohort/core/threads/synchronized.h"
#include "cohort/parameter_server/store/applied_tokens.h"

namespace cohort::internal {

// A push's token is the same each time that it is sent. Token 0 is nobody's: it may begin at any
// time.
// Thread safety: any thread.
class PushTokens {
 public:
  // How long begin waits. Whoever sends a push gives a sending up after some such time, and sends
  // it again.
  explicit PushTokens(std::chrono::milliseconds patience = std::chrono::minutes(1))
      : patience_(patience) {}

  // The push's operation that comes next; nothing: all have been applied. Waits while they are
  // being applied: two sendings of one push may arrive at the same time. Then end or stop is to be
  // called. Errors: Unavailable (they are being applied still when its patience ends; the push may
  // be sent again).
  std::optional<size_t> begin(uint64_t token);
  // All of them have been applied.
  void end(uint64_t token) noexcept;
  // Notes that the operations before `next` have been applied.
  void stop(uint64_t token, size_t next);

  // No token below comes again: they need not be remembered.
  void forget_below(uint64_t token);
  void forget_all();

  // How often begin has found that they have been applied.
  int64_t repeated() const;

 private:
  // They are being applied, or one of them has failed.
  struct Begun {
    uint64_t token = 0;
    size_t next = 0;
    bool is_running = true;
    AppliedTokens::Room room = {};  // the token's, so that end cannot fail
  };
  struct Pushes {
    std::vector<Begun>::iterator find(uint64_t token);

    AppliedTokens applied;
    std::vector<Begun> begun;
    int64_t repeated = 0;
  };

  const std::chrono::milliseconds patience_;
  Synchronized<Pushes> pushes_;
};

}  // namespace cohort::internal
