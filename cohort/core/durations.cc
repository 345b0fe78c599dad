#include "cohort/core/durations.h"

#include "cohort/core/error.h"

namespace cohort::internal {

void check_not_negative(std::string_view option, std::chrono::milliseconds duration) {
  if (duration.count() >= 0) return;
  throw InvalidArgumentError(
      str(option, " is ", duration.count(), " ms; a duration cannot be negative"));
}

}  // namespace cohort::internal
