// Tells ThreadSanitizer how gRPC hands objects from thread to thread. Debian's gRPC is not compiled
// for the sanitizer, which sees neither its locks nor its queues; these calls say what happens
// after what. Without the sanitizer they do nothing.
#pragma once

#include "cohort/core/threads/thread_sanitizer.h"

#ifdef COHORT_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>

extern "C" {  // of the sanitizer's library, which declares them nowhere
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}
#endif

namespace cohort::internal::rpc {

// In its scope this thread has what gRPC handed over with `object`; at the end it hands it on.
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

// Writes of this thread in its scope are not watched. gRPC makes an object there, by code of its
// headers, and its library then gives the object to other threads.
class UnwatchedWrites {
 public:
  UnwatchedWrites() {
#ifdef COHORT_THREAD_SANITIZER
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
#endif
  }
  ~UnwatchedWrites() {
#ifdef COHORT_THREAD_SANITIZER
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
#endif
  }
  UnwatchedWrites(const UnwatchedWrites&) = delete;
  UnwatchedWrites& operator=(const UnwatchedWrites&) = delete;
};

}  // namespace cohort::internal::rpc
