#include "cohort/core/profiler/profiler.h"

#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/profiler/session.h"

namespace cohort::profiler {

void start(const ProfilerOptions& options) {
  if (!internal::begin_session(options, internal::SessionKind::kProgram)) {
    throw FailedPreconditionError("profiler::start: the profiler runs already; stop it first");
  }
}

Profile stop() {
  std::optional<Profile> profile = internal::end_session(internal::SessionKind::kProgram);
  if (!profile) {
    throw FailedPreconditionError("profiler::stop: the profiler does not run; start it first");
  }
  return *std::move(profile);
}

}  // namespace cohort::profiler
