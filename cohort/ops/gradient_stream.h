// Gradients handed over one by one, each as soon as the backward pass has it.
#pragma once

#include <c10/core/Stream.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "cohort/core/function_ref.h"
#include "cohort/core/structure/tensor.h"

namespace cohort::internal {

// Watches a list of leaves, each listed once; those that do not require gradients are passed over.
// Thread safety: none. Several may watch a leaf, of which one runs at a time; the leaf's .grad
// belongs to them.
class GradientStream {
 public:
  explicit GradientStream(std::vector<Tensor> leaves);
  ~GradientStream();
  GradientStream(const GradientStream&) = delete;
  GradientStream& operator=(const GradientStream&) = delete;

  const std::vector<Tensor>& leaves() const { return leaves_; }

  // Runs the backward pass of `target`, summed over its elements, and gives up its graph. Calls
  // ready(i, gradient of leaf i), on whichever thread the pass is, in the order in which gradients
  // are complete; not for leaves that `target` does not depend on. What `ready` throws ends the
  // pass and is thrown.
  void run(const Tensor& target, FunctionRef<void(size_t, Tensor)> ready);

 private:
  class Hook;
  struct Watched;  // a leaf's node in the graph, and the hook there

  void watch();
  void stop_watching();
  void complete(size_t i);

  std::vector<Tensor> leaves_;
  std::vector<Watched> watched_;
  c10::Stream made_in_;  // the device's stream that was current when the nodes were made
  const FunctionRef<void(size_t, Tensor)>* ready_ = nullptr;
};

}  // namespace cohort::internal
