#include "cohort/distribute/tracing.h"

#include <utility>

namespace cohort::internal {
namespace {

thread_local bool tracing_now = false;

}  // namespace

Tracing::Tracing() : outer_(std::exchange(tracing_now, true)) {}
Tracing::~Tracing() { tracing_now = outer_; }
bool is_tracing() { return tracing_now; }

}  // namespace cohort::internal
