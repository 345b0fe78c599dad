// Settings for memory that is freed and allocated again in every step.
#pragma once

#include "cohort/core/export.h"

namespace cohort::config {

// Keeps freed pages in the process instead of returning them to the system. The system must clear a
// new page, which costs far more than reusing one. The process then stays as large as its largest
// step; call this at the start of programs that train. Returns whether the C library accepted the
// setting (glibc does; sanitizers' allocators do not).
// Thread safety: any thread.
COHORT_API bool keep_freed_memory();

}  // namespace cohort::config
