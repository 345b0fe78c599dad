#include "cohort/cluster/membership/settings.h"

#include "cohort/core/error.h"

namespace cohort::internal::membership {

void check(const HeartbeatSettings& settings) {
  const auto ms = [](Duration duration) {
    return str(std::chrono::duration<double, std::milli>(duration).count(), " ms");
  };
  if (settings.interval <= Duration::zero()) {
    throw InvalidArgumentError(
        str("the heartbeat interval is ", ms(settings.interval), "; it must be positive"));
  }
  if (settings.dead_after / 4 < settings.interval) {
    throw InvalidArgumentError(str("a task would be dead after ", ms(settings.dead_after),
                                   " without a heartbeat, with one every ", ms(settings.interval),
                                   "; let it miss at least four: ", ms(settings.interval * 4)));
  }
  if (settings.reconnect_grace < Duration::zero() ||
      settings.reconnect_grace > settings.dead_after) {
    throw InvalidArgumentError(str("reconnect_grace is ", ms(settings.reconnect_grace),
                                   "; it lies between 0 and dead_after, ",
                                   ms(settings.dead_after)));
  }
}

}  // namespace cohort::internal::membership
