// Log lines on stderr, with a level that the program sets.
//
//   cohort::logging::set_level(cohort::logging::Level::kWarning);
#pragma once

#include <string>
#include <string_view>

#include "cohort/core/error.h"
#include "cohort/core/export.h"

namespace cohort::logging {

enum class Level { kDebug, kInfo, kWarning, kError, kOff };

// The least severe level that is written; kInfo at start-up. Thread safety: any thread.
COHORT_API void set_level(Level level);
COHORT_API Level level();

}  // namespace cohort::logging

namespace cohort::internal {

COHORT_API void write_log(logging::Level level, std::string_view message);

// log(Level::kInfo, "Using MirroredStrategy with devices ", names): parts joined only if written.
template <class... Parts>
void log(logging::Level level, const Parts&... parts) {
  if (level >= logging::level()) write_log(level, str(parts...));
}
template <class... Parts>
void log_info(const Parts&... parts) {
  log(logging::Level::kInfo, parts...);
}
template <class... Parts>
void log_warning(const Parts&... parts) {
  log(logging::Level::kWarning, parts...);
}

}  // namespace cohort::internal
