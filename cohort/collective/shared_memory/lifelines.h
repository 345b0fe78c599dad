// Lets the processes of a group notice that one of them has ended, in whatever way. Each process
// alone holds one end of a pipe, which the system closes when the process ends.
#pragma once

#include <vector>

#include "cohort/core/host/unique_fd.h"

namespace cohort::collective::shared_memory {

class Lifelines {
 public:
  Lifelines() = default;
  // own: this task's end. others: the other ends, in the order of ranks.
  Lifelines(internal::UniqueFd own, std::vector<internal::UniqueFd> others)
      : own_(std::move(own)), others_(std::move(others)) {}

  // The ranks whose end is closed, in order; `except`, this task's, is none of them.
  std::vector<int> lost(int except) const;
  // Makes this task lost to the others from now on.
  void let_go() { own_.reset(); }

 private:
  internal::UniqueFd own_;
  std::vector<internal::UniqueFd> others_;
};

}  // namespace cohort::collective::shared_memory
