// Reads of variables on ps tasks that are kept for a while.
//
//   {
//     const distribute::CachedVariableReads cached;   // or: const auto c = cache_variable_reads();
//     v.value();      // read once
//     v.assign(5.);
//     v.value();      // the same value as before
//   }
//   v.value();        // 5
#pragma once

#include <memory>

#include "cohort/core/export.h"

namespace cohort::internal {
struct CachedReads;
}

namespace cohort::distribute {

// While it lives, the first read of each variable of a ParameterServerStrategy on this thread is
// what all later reads return, in steps and outside, whatever is assigned meanwhile, but in fit,
// evaluate, predict and saves of models. It does not change what is assigned. A function that is
// scheduled while it lives is in such a scope of its own, on its worker, from its beginning to its
// end: there its first reads count, in each replica.
// Thread safety: one thread.
class COHORT_API [[nodiscard]] CachedVariableReads {
 public:
  // Errors: InvalidArgument (there is such a scope already, also that in which a function was
  // scheduled).
  CachedVariableReads();
  ~CachedVariableReads();
  CachedVariableReads(const CachedVariableReads&) = delete;
  CachedVariableReads& operator=(const CachedVariableReads&) = delete;

 private:
  const std::unique_ptr<internal::CachedReads> reads_;
};

// TensorFlow's name.
inline CachedVariableReads cache_variable_reads() { return CachedVariableReads(); }

}  // namespace cohort::distribute
