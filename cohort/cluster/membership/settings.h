// How soon a silent task counts as dead, and how one leaves that does not.
#pragma once

#include <chrono>

namespace cohort::internal::membership {

using Duration = std::chrono::nanoseconds;

// The reason that most tasks give when they leave. Nobody needs to know it.
inline constexpr char kEndOfProgram[] = "at the end of its program";

// One clock decides, the service's; agents take the settings from its answer when they register.
struct HeartbeatSettings {
  // How often a task says that it lives.
  Duration interval = std::chrono::seconds(5);
  // A task that was not heard of for this long is dead. This must be at least four intervals, so
  // that a busy machine loses no tasks.
  Duration dead_after = std::chrono::seconds(20);
  // How long a task whose connection broke may take to come back over a new one. Much shorter than
  // dead_after: the system closes the connections of a process that ended, and a process that lives
  // calls again at once.
  Duration reconnect_grace = std::chrono::milliseconds(30);

  bool operator==(const HeartbeatSettings&) const = default;
};

// Errors: InvalidArgument (an interval that is not positive, dead_after below four intervals, a
// negative or longer reconnect_grace).
void check(const HeartbeatSettings& settings);

inline constexpr HeartbeatSettings kDefaultHeartbeat;
// For tests on one machine.
inline constexpr HeartbeatSettings kTestHeartbeat = {.interval = std::chrono::milliseconds(500),
                                                     .dead_after = std::chrono::seconds(2)};

}  // namespace cohort::internal::membership
