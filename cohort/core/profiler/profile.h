// What the profiler measures: the time of each thread in each phase of the steps.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "cohort/core/export.h"

namespace cohort::profiler {

// What a thread does at a given time: one of these phases, or none.
enum class Phase {
  kInput,    // the next batch of a distributed iterator
  kCompute,  // the step function
  kReduce,   // gradients of several replicas are added up
  kUpdate,   // an optimizer's rule is applied
  kWait,     // for other replicas
};
inline constexpr size_t kNumPhases = 5;
// "input", ...
COHORT_API const char* phase_name(Phase phase);

struct ProfilerOptions {
  // Records when each phase, and each part of a plan, began and ended, for write_chrome_trace.
  bool trace = false;
  // The most phases that a trace keeps of each thread, and the most parts. Later ones are left out
  // of the trace, but phases still count in the times.
  int64_t max_trace_events = 1'000'000;
};

struct TraceEvent {
  Phase phase;
  std::chrono::nanoseconds begin;  // since start()
  std::chrono::nanoseconds duration;
};

// Something within a phase that has a name of its own: an operation of a plan, forward or backward.
struct TracePart {
  std::string name;                // "forward: 3x3 convolution + bias + relu"
  std::chrono::nanoseconds begin;  // since start()
  std::chrono::nanoseconds duration;
};

struct ThreadProfile {
  std::string name;  // "replica_1"; the main thread's is the program's
  std::array<std::chrono::nanoseconds, kNumPhases> time{};  // by Phase
  std::vector<TraceEvent> events;
  std::vector<TracePart> parts;

  std::chrono::nanoseconds of(Phase phase) const { return time[static_cast<size_t>(phase)]; }
};

struct COHORT_API Profile {
  std::chrono::nanoseconds wall{0};  // from start() to stop()
  int64_t steps = 0;                 // calls of strategy.run
  std::vector<ThreadProfile> threads;

  // One line per thread: milliseconds per step in each phase, and the rest of the wall time.
  std::string table() const;
  // JSON in Chrome's trace event format. Errors: as FileSystem (the file cannot be written).
  void write_chrome_trace(const std::string& path) const;
};

}  // namespace cohort::profiler
