// Traces of a training for TensorBoard: where the time of its steps goes.
//
//   auto scope = writer.as_default();
//   tf::summary::trace_on({.profiler = true});
//   for (int i = 0; i < 5; ++i) strategy.run(train_step, iterator.get_next());
//   tf::summary::trace_export("steps", {.step = 5, .profiler_outdir = "logs/train"});
//
// There is one trace at a time, beside no profiler::start() of the program's.
// Thread safety: one thread, while no step runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cohort/core/export.h"

namespace cohort::summary {

struct TraceOptions {
  // TensorFlow's graphs of functions. There are none here, so that it says nothing; keras_model
  // draws a model's layers.
  bool graph = true;
  // Records when each phase of a step, and each part of a plan, began and ended. Without it only
  // sums of times are kept, which costs next to nothing.
  bool profiler = false;
};

// Begins a trace; logs a warning where there is one already.
// Errors: FailedPrecondition (the program's profiler runs).
COHORT_API void trace_on(const TraceOptions& options = {});

struct TraceExportOptions {
  std::optional<int64_t> step = {};  // default: that of as_default or set_step
  // The run's directory, needed with `profiler`. TensorBoard's page of profiles shows the file that
  // is written there, plugins/profile/TIME/HOST.xplane.pb.
  std::string profiler_outdir = "";
};

// Ends the trace. Where summaries are recorded, the times of each phase by thread become a text
// summary of this name; with `profiler` the file is written in any case.
// Errors: FailedPrecondition (no trace_on), InvalidArgument (with `profiler`, no profiler_outdir:
// the trace goes on; no step), those of writing a file or summary.
COHORT_API void trace_export(std::string_view name, const TraceExportOptions& options = {});

// Ends the trace, if there is one, and forgets it.
COHORT_API void trace_off();

}  // namespace cohort::summary
