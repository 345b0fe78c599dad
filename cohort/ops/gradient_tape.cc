#include "cohort/ops/gradient_tape.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

#include "cohort/core/error.h"
#include "cohort/ops/gradient_stream.h"

namespace cohort {
namespace {

// Tapes that record on this thread now.
thread_local int recording_tapes = 0;

void check_target(const Tensor& target, const Tensor& output_gradients) {
  if (!target.defined()) {
    throw InvalidArgumentError("GradientTape::gradient: the target is an undefined tensor");
  }
  if (output_gradients.defined() && output_gradients.sizes() != target.sizes()) {
    throw InvalidArgumentError(internal::str("GradientTape::gradient: output_gradients is ",
                                             internal::describe(output_gradients),
                                             ", but the target is ", internal::describe(target)));
  }
}

}  // namespace

GradientTape::GradientTape(GradientTapeOptions options)
    : options_(options), previous_grad_mode_(at::GradMode::is_enabled()) {
  at::GradMode::set_enabled(true);
  ++recording_tapes;
}

GradientTape::~GradientTape() { stop_recording(); }

void GradientTape::stop_recording() {
  if (!recording_) return;
  recording_ = false;
  --recording_tapes;
  at::GradMode::set_enabled(previous_grad_mode_);
}

void GradientTape::watch(const Tensor& tensor) const {
  if (!tensor.defined() || !(tensor.is_floating_point() || tensor.is_complex())) {
    throw InvalidArgumentError(internal::str("GradientTape::watch takes floating tensors, but got ",
                                             internal::describe(tensor)));
  }
  if (!tensor.requires_grad()) tensor.set_requires_grad(true);
}

std::vector<Tensor> GradientTape::gradient(const Tensor& target, const std::vector<Tensor>& sources,
                                           const GradientOptions& options) {
  if (used_ && !options_.persistent) {
    throw FailedPreconditionError(
        "GradientTape::gradient was called twice; make the tape with {.persistent = true}");
  }
  check_target(target, options.output_gradients);
  used_ = true;
  if (!options_.persistent) stop_recording();
  const bool create_graph = recording_tapes > 0;

  std::vector<Tensor> inputs;
  for (const Tensor& source : sources) {
    if (source.defined() && source.requires_grad()) inputs.push_back(source);
  }
  std::vector<Tensor> found;
  if (target.requires_grad() && !inputs.empty()) {
    Tensor seed = options.output_gradients;
    if (!seed.defined()) seed = at::ones_like(target);
    found =
        torch::autograd::grad({target}, inputs, {seed},
                              /*retain_graph=*/options_.persistent || create_graph, create_graph,
                              /*allow_unused=*/true);
  } else {
    found.resize(inputs.size());
  }

  std::vector<Tensor> gradients;
  gradients.reserve(sources.size());
  size_t next = 0;
  for (const Tensor& source : sources) {
    Tensor gradient;
    if (source.defined() && source.requires_grad()) gradient = std::move(found[next++]);
    if (!gradient.defined() && options.unconnected_gradients == UnconnectedGradients::ZERO) {
      gradient = at::zeros_like(source);
    }
    gradients.push_back(std::move(gradient));
  }
  return gradients;
}

void GradientTape::stream(const Tensor& target, internal::GradientStream& stream,
                          FunctionRef<void(size_t, Tensor)> ready) {
  // The pass gives up the graph, and is not recorded itself.
  const int own = recording_ ? 1 : 0;
  if (options_.persistent || recording_tapes > own || used_) {
    std::vector<Tensor> gradients = gradient(target, stream.leaves());
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (gradients[i].defined()) ready(i, std::move(gradients[i]));
    }
    return;
  }
  check_target(target, Tensor());
  used_ = true;
  stop_recording();
  stream.run(target, ready);
}

NoGradient::NoGradient() : previous_(at::GradMode::is_enabled()) {
  at::GradMode::set_enabled(false);
}
NoGradient::~NoGradient() { at::GradMode::set_enabled(previous_); }

}  // namespace cohort
