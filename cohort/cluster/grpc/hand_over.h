// gRPC hands objects from thread to thread. Debian's is not compiled for ThreadSanitizer, which sees
// neither its locks nor its queues; these calls say what happens after what. Without the sanitizer
// they are nothing.
#pragma once

#if defined(__SANITIZE_THREAD__)
#define COHORT_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define COHORT_THREAD_SANITIZER 1
#endif
#endif

#ifdef COHORT_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

namespace cohort::internal::rpc {

// For its scope this thread has what gRPC handed over with `object`, and gives it on at the end.
class HandOver {
 public:
  explicit HandOver(void* object) : object_(object) {
#ifdef COHORT_THREAD_SANITIZER
    __tsan_acquire(object_);
#endif
  }
  ~HandOver() {
#ifdef COHORT_THREAD_SANITIZER
    if (object_ != nullptr) __tsan_release(object_);
#endif
  }
  HandOver(const HandOver&) = delete;
  HandOver& operator=(const HandOver&) = delete;

  // The object is about to end; nobody gets it afterwards.
  void last() { object_ = nullptr; }

 private:
  void* object_;
};

}  // namespace cohort::internal::rpc
