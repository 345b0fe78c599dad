#include "cohort/keras/base/logits.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

#include "cohort/keras/base/tensor_notes.h"

namespace cohort::internal {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

struct Sigmoid {
  static Tensor of(const Tensor& logits) { return logits.sigmoid(); }
  static Tensor gradient(const Tensor& outer, const Tensor& result) {
    return outer * result * (1 - result);
  }
};

struct Softmax {
  static Tensor of(const Tensor& logits) { return logits.softmax(-1); }
  static Tensor gradient(const Tensor& outer, const Tensor& result) {
    return result * (outer - (outer * result).sum(-1, /*keepdim=*/true));
  }
};

// Its node in the graph keeps the logits, as long as the graph lives.
template <class Squash>
struct Remembering : Function<Remembering<Squash>> {
  static constexpr size_t kResult = 0, kLogits = 1;

  static Tensor forward(AutogradContext* context, const Tensor& logits) {
    const Tensor result = Squash::of(logits);
    context->save_for_backward({result, logits});
    return result;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return {Squash::gradient(gradients[0], context->get_saved_variables()[kResult])};
  }
};

// The logits of this thread's living results, for those whose graph does not hold them: nothing is
// recorded, or the graph has been used up.
template <class Squash>
TensorNotes& noted_logits() {
  thread_local TensorNotes logits;
  return logits;
}

template <class Squash>
Tensor squash(const Tensor& logits) {
  Tensor result;
  if (at::GradMode::is_enabled() && logits.requires_grad()) {
    result = Remembering<Squash>::apply(logits);
  } else {
    result = Squash::of(logits);
  }
  noted_logits<Squash>().add(result, logits.detach());
  return result;
}

template <class Squash>
Tensor logits_of(const Tensor& probabilities) {
  using Node = torch::autograd::CppNode<Remembering<Squash>>;
  if (auto* const node = dynamic_cast<Node*>(probabilities.grad_fn().get())) {
    try {
      return node->ctx_.get_saved_variables()[Remembering<Squash>::kLogits];
    } catch (const c10::Error&) {  // a gradient used the graph up, or they were changed in place
    }
  }
  return noted_logits<Squash>().find_of_unchanged(probabilities);
}

}  // namespace

Tensor activate_outputs(const keras::activations::Activation& activation, const Tensor& logits) {
  if (activation.is_named() && activation.name() == "sigmoid") return squash<Sigmoid>(logits);
  if (activation.is_named() && activation.name() == "softmax" && logits.dim() > 1) {
    return squash<Softmax>(logits);
  }
  return activation(logits);
}

Tensor logits_of_sigmoid(const Tensor& probabilities) { return logits_of<Sigmoid>(probabilities); }
Tensor logits_of_softmax(const Tensor& probabilities) { return logits_of<Softmax>(probabilities); }

}  // namespace cohort::internal
