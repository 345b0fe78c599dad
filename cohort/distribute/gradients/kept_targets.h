// What an update in a step that may be undone (StepTransaction) keeps of its targets.
#pragma once

#include <c10/util/SmallVector.h>

#include <cstdint>
#include <span>
#include <vector>

#include "cohort/collective/slices.h"
#include "cohort/distribute/gradients/gradient_exchange.h"
#include "cohort/distribute/gradients/sparse_rows.h"

namespace cohort::internal {

class Replica;

// Thread safety: prepare by one thread; then keep by any, of other elements each.
class KeptTargets {
 public:
  // What is to be updated.
  struct Update {
    std::span<const UpdateTarget> targets;
    const UpdateStep& step;
    // Each target's sum, and the rows of which it consists. Empty: every target is updated.
    std::span<const Tensor> sums = {};
    std::span<const std::span<const SparseRows>> rows = {};
    // Whether a target and its slots are changed in other ways than by passes over their elements.
    bool whole = false;
  };

  // Before an update. Keeps of targets of which few rows change these rows; keep() does the rest.
  void prepare(const Replica& replica, const Update& update);
  // Whether keep() is to be called for parts of target i before they change.
  bool keeps(size_t i) const { return i < kept_.size() && !kept_[i].empty(); }
  void keep(size_t i, collective::SliceRange part) const;

 private:
  // The places from which and to which the values of a variable are copied.
  struct Copy {
    const char* from;
    char* to;
    int64_t element_size;
  };

  std::vector<c10::SmallVector<Copy, 4>> kept_;  // of each target and its slots
};

}  // namespace cohort::internal
