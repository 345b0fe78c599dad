// Answers that are given later, by other threads.
#pragma once

#include "cohort/core/threads/synchronized.h"

namespace cohort::internal {

// Its end waits for them; what they wait for has its deadline. Thread safety: any thread.
class AnswersUnderWay {
 public:
  ~AnswersUnderWay() {
    auto count = count_.lock();
    count.wait([&] { return *count == 0; });
  }

  void begin() { ++*count_.lock(); }
  void end() { --*count_.change(); }

 private:
  Synchronized<int> count_{0};
};

}  // namespace cohort::internal
