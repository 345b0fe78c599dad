// Defines COHORT_THREAD_SANITIZER where this is compiled for ThreadSanitizer, by gcc or clang.
#pragma once

#if defined(__SANITIZE_THREAD__)
#define COHORT_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define COHORT_THREAD_SANITIZER 1
#endif
#endif
