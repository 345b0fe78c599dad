// Measures where the time of training steps goes, thread by thread.
//
//   profiler::start({.trace = true});
//   for (const auto& batch : dist_dataset) strategy.run(train_step, batch);
//   const profiler::Profile profile = profiler::stop();
//   std::cout << profile.table();
//   profile.write_chrome_trace("trace.json");   // for chrome://tracing, Perfetto
#pragma once

#include "cohort/core/export.h"
#include "cohort/core/profiler/profile.h"

namespace cohort::profiler {

// Costs a few clock readings per step and per block of the update; nothing while it is off.
// Thread safety: start and stop from one thread, while no step runs.
// Errors: FailedPrecondition (start while it runs, stop while it does not).
COHORT_API void start(const ProfilerOptions& options = {});
COHORT_API Profile stop();

}  // namespace cohort::profiler
