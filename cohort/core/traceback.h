// How much errors that come from libtorch say.
//
//   debugging::disable_traceback_filtering();   // while looking for the operation that failed
#pragma once

#include "cohort/core/export.h"

namespace cohort::debugging {

// With filtering, as at start-up, such an error has libtorch's message alone; without, also its
// backtrace: 3 kB of C++ frames. For the whole process. Thread safety: any thread.
COHORT_API void enable_traceback_filtering();
COHORT_API void disable_traceback_filtering();
COHORT_API bool is_traceback_filtering_enabled();

}  // namespace cohort::debugging
