#include "cohort/distribute/step/step_call.h"

#include "cohort/core/bytes/kept_blocks.h"
#include "cohort/core/error.h"
#include "cohort/distribute/core/strategy_core.h"

namespace cohort::internal {

void* RunFrame::operator new(size_t bytes) { return take_block(bytes); }
void RunFrame::operator delete(void* frame, size_t bytes) noexcept {
  give_back_block(frame, bytes);
}
void* RunFrame::operator new(size_t bytes, std::align_val_t alignment) {
  return ::operator new(bytes, alignment);
}
void RunFrame::operator delete(void* frame, size_t, std::align_val_t alignment) noexcept {
  ::operator delete(frame, alignment);
}

void throw_no_step_function() {
  throw InvalidArgumentError("run was given an empty function; give it one that can be called");
}

void throw_different_variables() {
  throw InvalidArgumentError("the replicas of a step returned different variables");
}

size_t num_local_replicas(const StrategyCore& core) {
  return static_cast<size_t>(core.num_local_replicas());
}

void run_frame(StrategyCore& core, const std::shared_ptr<RunFrame>& frame,
               const distribute::RunOptions& options) {
  core.run(frame, options);
}

std::shared_ptr<RunFrame> own_frame(RunFrame* frame) {
  return {frame, std::default_delete<RunFrame>(), KeptAllocator<RunFrame>()};
}

Tensor detached(const Tensor& tensor) {
  return tensor.defined() && tensor.requires_grad() ? tensor.detach() : tensor;
}

Structure detached(const Structure& structure) {
  bool recorded = false;
  structure.for_each([&](const Leaf& leaf) {
    recorded |= leaf.is_tensor() && leaf.tensor().defined() && leaf.tensor().requires_grad();
  });
  if (!recorded) return structure;
  return structure.map([](const Leaf& leaf) -> Leaf {
    return leaf.is_tensor() ? Leaf(detached(leaf.tensor())) : leaf;
  });
}

}  // namespace cohort::internal
