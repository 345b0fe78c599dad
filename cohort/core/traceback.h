// How much errors that come from libtorch say.
//
//   debugging::disable_traceback_filtering();   // while looking for the operation that failed
#pragma once

#include "cohort/core/export.h"

namespace cohort::debugging {

// If filtering is on, as it is by default, such an error has only libtorch's message; if it is off,
// also libtorch's backtrace: 3 kB of C++ frames. The setting is that of the whole process.
// Thread safety: any thread.
COHORT_API void enable_traceback_filtering();
COHORT_API void disable_traceback_filtering();
COHORT_API bool is_traceback_filtering_enabled();

}  // namespace cohort::debugging
