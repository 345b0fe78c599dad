// What CachedVariableReads keep.
#pragma once

#include <map>
#include <memory>

#include "cohort/core/structure/tensor.h"
#include "cohort/parameter_server/variables/row_cache.h"

namespace cohort::internal {

class ServedVariable;
class VariableImpl;

// What the calling thread has read in the scope.
struct CachedReads {
  struct Entry {
    std::shared_ptr<const VariableImpl> variable = nullptr;
    Tensor value = {};   // undefined: not read whole
    RowCache rows = {};  // that were read otherwise
  };
  std::map<const VariableImpl*, Entry> entries;
};
// nullptr: the thread is in no such scope.
CachedReads* cached_reads();

// While it lives, the thread reads from there; nullptr: from nowhere.
class [[nodiscard]] ScopedCachedReads {
 public:
  explicit ScopedCachedReads(CachedReads* reads);
  ~ScopedCachedReads();
  ScopedCachedReads(const ScopedCachedReads&) = delete;
  ScopedCachedReads& operator=(const ScopedCachedReads&) = delete;

 private:
  CachedReads* const previous_;
};

// What the scope has read of the variable.
CachedReads::Entry* cached_entry(const ServedVariable& variable);

}  // namespace cohort::internal
