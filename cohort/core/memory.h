// Memory that is freed and taken again in every step.
#pragma once

#include "cohort/core/export.h"

namespace cohort::config {

// Keeps freed pages in the process instead of giving them back to the system: a page that is taken
// anew must be cleared first, which costs far more than using one again. The process then stays as
// large as its largest step; call it at the start of programs that train.
// Returns whether the C library took the setting (glibc does; sanitizers' allocators do not).
// Thread safety: any thread.
COHORT_API bool keep_freed_memory();

}  // namespace cohort::config
