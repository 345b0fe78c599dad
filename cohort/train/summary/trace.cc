#include "cohort/train/summary/trace.h"

#include <algorithm>
#include <chrono>
#include <mutex>

#include "cohort/core/error.h"
#include "cohort/core/files/file_system.h"
#include "cohort/core/host/host_name.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/profiler/profiler.h"
#include "cohort/core/profiler/xspace.h"
#include "cohort/core/text.h"
#include "cohort/core/utc_text.h"
#include "cohort/train/summary/event_writer.h"
#include "cohort/train/summary/summary.h"

namespace cohort::summary {
namespace {

std::mutex trace_mutex;
std::optional<TraceOptions> trace;  // guarded by trace_mutex

// The name of the run under which the page of profiles lists it: 2026_11_28_21_52_44.
std::string profile_run() {
  const std::chrono::sys_seconds now(
      std::chrono::seconds(static_cast<int64_t>(internal::wall_time())));
  std::string name = internal::utc_text(now).substr(0, 19);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '-' || c == ':' || c == 'T'; }, '_');
  return name;
}

void write_profile(const profiler::Profile& profile, const std::string& directory) {
  const std::string run = internal::join_path(directory, "plugins/profile/" + profile_run());
  internal::posix_file_system().make_directories(run);
  internal::write_xspace(profile, internal::join_path(run, internal::host_name() + ".xplane.pb"),
                         internal::wall_time());
}

}  // namespace

void trace_on(const TraceOptions& options) {
  const std::lock_guard lock(trace_mutex);
  if (trace) {
    internal::log_warning("summary::trace_on: there is a trace already, which goes on");
    return;
  }
  profiler::start({.trace = options.profiler});
  trace = options;
}

void trace_export(std::string_view name, const TraceExportOptions& options) {
  const std::lock_guard lock(trace_mutex);
  if (!trace) {
    throw FailedPreconditionError(
        internal::str("summary::trace_export of ", internal::quoted(name),
                      ": there is no trace; call summary::trace_on before the steps"));
  }
  const bool writes_profile = trace->profiler;
  if (writes_profile && options.profiler_outdir.empty()) {
    throw InvalidArgumentError(
        internal::str("summary::trace_export of ", internal::quoted(name),
                      ": the trace was begun with .profiler, so it needs a .profiler_outdir"));
  }
  trace.reset();
  const profiler::Profile profile = profiler::stop();
  if (writes_profile) write_profile(profile, options.profiler_outdir);
  text(name, "```\n" + profile.table() + "```", {.step = options.step});
}

void trace_off() {
  const std::lock_guard lock(trace_mutex);
  if (!trace) return;
  trace.reset();
  profiler::stop();
}

}  // namespace cohort::summary
