#include "step_profile.h"

#include <cohort/cohort.h>

#include <iostream>

namespace custom_training {

namespace profiler = cohort::profiler;

StepProfile::StepProfile(const Options& options, int epoch)
    : options_(options), trace_(epoch == 0 && !options.trace.empty()) {
  // A path that cannot be written to is an error now, not after an epoch.
  if (trace_) profiler::Profile().write_chrome_trace(options_.trace);
  if (options_.profile || trace_) profiler::start({.trace = trace_});
}

void StepProfile::report() const {
  if (!options_.profile && !trace_) return;
  const profiler::Profile profile = profiler::stop();
  if (options_.profile) std::cerr << profile.table();
  if (trace_) profile.write_chrome_trace(options_.trace);
}

}  // namespace custom_training
