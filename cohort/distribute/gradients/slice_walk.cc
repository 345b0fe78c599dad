#include "cohort/distribute/gradients/slice_walk.h"

#include <algorithm>

#include "cohort/core/cpu/intra_op_threads.h"
#include "cohort/distribute/variables/local_variable.h"
#include "cohort/distribute/variables/variable_impl.h"

namespace cohort::internal {

using collective::SliceRange;

SliceRange ThreadPart::slice_of(int64_t total) const {
  const SliceRange whole = collective::slice_of(total, part.number, part.of);
  SliceRange own = collective::slice_of(whole.end - whole.begin, thread, threads);
  own.begin += whole.begin;
  own.end += whole.begin;
  return own;
}

int64_t size_of(const UpdateTarget& target) {
  return target.variable.impl().local().component(0).numel();
}

void walk(std::span<const UpdateTarget> targets, const ThreadPart& part,
          FunctionRef<void(size_t, SliceRange)> visit) {
  int64_t total = 0;
  for (const UpdateTarget& target : targets) total += size_of(target);
  const SliceRange mine = part.slice_of(total);
  int64_t offset = 0;
  for (size_t i = 0; i < targets.size(); ++i) {
    const int64_t size = size_of(targets[i]);
    visit(i,
          {std::max<int64_t>(mine.begin - offset, 0), std::min<int64_t>(mine.end - offset, size)});
    offset += size;
  }
}

int64_t elements_of(const Contribution& mine, const optim::UpdateRule& rule) {
  int64_t elements = 0;
  for (const Tensor& gradient : mine.gradients) {
    if (!gradient.defined()) continue;
    const bool rows_alone = gradient.layout() != at::kStrided && rule.zero_gradient_is_no_op();
    elements += rows_alone ? gradient._values().numel() : gradient.numel();
  }
  return elements;
}

int threads_for(int64_t elements, const WorkPart& part) {
  constexpr int64_t kLeast = 16 << 10;  // elements for each
  const int64_t own = elements / part.of;
  return static_cast<int>(std::clamp<int64_t>(own / kLeast, 1, intra_op_threads()));
}

}  // namespace cohort::internal
