// Handlers of pthread_exit and pthread_cancel: catch (abi::__forced_unwind&).
#pragma once

#include <cxxabi.h>

// Marks a function with such a handler. There is no object to which the handler's reference could
// be bound, which UndefinedBehaviorSanitizer would report.
#define COHORT_CATCHES_FORCED_UNWIND __attribute__((no_sanitize("null")))
