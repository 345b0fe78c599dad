#include "cohort/core/profiler/tracing.h"

#include <utility>

namespace cohort::internal {
namespace {

thread_local uint64_t trace_now = 0;
thread_local uint64_t traces_begun = 0;

uint64_t next_trace(bool traces) {
  if (!traces) return 0;
  return trace_now != 0 ? trace_now : ++traces_begun;
}

}  // namespace

Tracing::Tracing(bool traces) : outer_(std::exchange(trace_now, next_trace(traces))) {}
Tracing::~Tracing() { trace_now = outer_; }
bool is_tracing() { return trace_now != 0; }
uint64_t current_trace() { return trace_now; }

}  // namespace cohort::internal
