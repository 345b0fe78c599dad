#include "cohort/distribute/step/step_call.h"

#include "cohort/core/bytes/kept_blocks.h"
#include "cohort/core/error.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/step/function_graphs.h"

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

void throw_not_hosted() {
  throw FailedPreconditionError(
      "an argument of run has components that could not be had again where replicas move to other "
      "workers, as they do under elastic; pass batches of a distributed iterator, results of run, "
      "values of experimental_distribute_values_from_function, or one value for all replicas");
}

size_t num_local_replicas(const StrategyCore& core) {
  return static_cast<size_t>(core.num_local_replicas());
}

void run_frame(StrategyCore& core, const std::shared_ptr<RunFrame>& frame,
               const distribute::RunOptions& options) {
  distribute::StepGraphs* const of_function = next_graphs_of_function();
  if (of_function == nullptr || options.capture) return core.run(frame, options);
  distribute::RunOptions captured = options;
  captured.capture = *of_function;
  core.run(frame, captured);
}

std::shared_ptr<RunFrame> own_frame(RunFrame* frame) {
  return {frame, std::default_delete<RunFrame>(), KeptAllocator<RunFrame>()};
}

namespace {

class Detaching final : public TensorMapping {
 public:
  bool changes(const Tensor& tensor) const override { return tensor.requires_grad(); }
  Tensor mapped(const Tensor& tensor) const override { return tensor.detach(); }
};

}  // namespace

const TensorMapping& detaching() {
  static const Detaching instance;
  return instance;
}

Tensor mapped(const Tensor& tensor, const TensorMapping& mapping) {
  return tensor.defined() && mapping.changes(tensor) ? mapping.mapped(tensor) : tensor;
}

Structure mapped(const Structure& structure, const TensorMapping& mapping) {
  bool changes = false;
  structure.for_each([&](const Leaf& leaf) {
    changes |= leaf.is_tensor() && leaf.tensor().defined() && mapping.changes(leaf.tensor());
  });
  if (!changes) return structure;
  return structure.map([&](const Leaf& leaf) -> Leaf {
    return leaf.is_tensor() ? Leaf(mapped(leaf.tensor(), mapping)) : leaf;
  });
}

}  // namespace cohort::internal
