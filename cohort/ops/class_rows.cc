#include "cohort/ops/class_rows.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/one_hot.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <utility>

#include "cohort/ops/graph_node.h"

namespace cohort::internal {
namespace {

using torch::autograd::SavedVariable;
using torch::autograd::variable_list;

// Calls function(uint8_t{}), function(int32_t{}) or function(int64_t{}).
template <class Function>
auto dispatch_labels(const Tensor& labels, const Function& function) {
  if (labels.scalar_type() == at::kByte) return function(uint8_t{});
  if (labels.scalar_type() == at::kInt) return function(int32_t{});
  return function(int64_t{});
}

struct ClassRows {
  int64_t count;
  int64_t classes;
};
ClassRows class_rows(const Tensor& logits) {
  const int64_t classes = logits.size(-1);
  return {logits.numel() / classes, classes};
}

// The loss of one row, and its softmax. A row with NaN has a loss that is NaN.
float loss_of_row(const float* logits, int64_t classes, int64_t label, float* probabilities) {
  float largest = logits[0];
  for (int64_t c = 1; c < classes; ++c) largest = std::max(largest, logits[c]);
  double sum = 0;
  for (int64_t c = 0; c < classes; ++c) {
    probabilities[c] = std::exp(logits[c] - largest);
    sum += probabilities[c];
  }
  const auto scale = static_cast<float>(1 / sum);
  for (int64_t c = 0; c < classes; ++c) probabilities[c] *= scale;
  return static_cast<float>(std::log(sum) - (static_cast<double>(logits[label]) - largest));
}

int64_t place_of_largest(const float* values, int64_t count) {
  int64_t place = 0;
  for (int64_t i = 1; i < count; ++i) {
    if (values[i] > values[place] || (std::isnan(values[i]) && !std::isnan(values[place])))
      place = i;
  }
  return place;
}

// False where a label is none.
template <class Label>
bool compute_losses(const Label* labels, const Tensor& logits, float* losses,
                    float* probabilities) {
  const auto [count, classes] = class_rows(logits);
  const float* row = logits.data_ptr<float>();
  for (int64_t i = 0; i < count; ++i, row += classes, probabilities += classes) {
    const auto label = static_cast<int64_t>(labels[i]);
    if (label < 0 || label >= classes) return false;
    losses[i] = loss_of_row(row, classes, label, probabilities);
  }
  return true;
}

// The gradient of a loss by its logits: the softmax, less 1 at the label.
class CrossentropyNode final : public GraphNode {
 public:
  CrossentropyNode(const Tensor& labels, const Tensor& logits, Tensor probabilities)
      : labels_(labels, /*is_output=*/false),
        logits_(logits, /*is_output=*/false),
        probabilities_(std::move(probabilities)) {}

  std::string name() const override { return "CrossentropyOfRows"; }

  variable_list apply(variable_list&& gradients) override {
    const std::lock_guard lock(mutex_);
    const Tensor gradient = gradients[0];
    if (!gradient.defined()) return only(std::move(gradients), Tensor());
    TORCH_CHECK(probabilities_.defined(), torch::autograd::ERR_BACKWARD_TWICE);
    if (at::GradMode::is_enabled()) return only(std::move(gradients), recorded(gradient));
    logits_.unpack();                        // refuses logits that were changed in place,
    const Tensor labels = labels_.unpack();  // and labels, which may be no classes now
    Tensor result = at::empty_like(probabilities_);
    const Tensor dense = gradient.contiguous();
    dispatch_labels(labels, [&](auto zero) {
      scale_rows(labels.data_ptr<decltype(zero)>(), dense.data_ptr<float>(),
                 result.data_ptr<float>());
    });
    return only(std::move(gradients), std::move(result));
  }

  void release_variables() override {
    const std::lock_guard lock(mutex_);
    labels_.reset_data();
    logits_.reset_data();
    probabilities_.reset();
  }

 private:
  // The same in libtorch's terms, for gradients of gradients.
  Tensor recorded(const Tensor& gradient) {
    const Tensor logits = logits_.unpack();
    return gradient.unsqueeze(-1) *
           (logits.softmax(-1) - at::one_hot(labels_.unpack().to(at::kLong), logits.size(-1)));
  }

  template <class Label>
  void scale_rows(const Label* labels, const float* gradients, float* results) const {
    const auto [count, classes] = class_rows(probabilities_);
    const float* probabilities = probabilities_.data_ptr<float>();
    for (int64_t i = 0; i < count; ++i, probabilities += classes, results += classes) {
      const float factor = gradients[i];
      for (int64_t c = 0; c < classes; ++c) results[c] = factor * probabilities[c];
      results[labels[i]] -= factor;
    }
  }

  SavedVariable labels_;
  SavedVariable logits_;
  Tensor probabilities_;  // undefined once released
};

}  // namespace

bool are_small_class_rows(const Tensor& labels, const Tensor& logits) {
  // Exponentials one by one: 4 ns each, as long as an operation of libtorch takes to begin with.
  constexpr int64_t kMostElements = 8192;
  const at::ScalarType label = labels.scalar_type();
  return logits.is_cpu() && labels.is_cpu() && logits.layout() == at::kStrided &&
         labels.layout() == at::kStrided && logits.scalar_type() == at::kFloat &&
         (label == at::kByte || label == at::kInt || label == at::kLong) && logits.dim() > 0 &&
         labels.sizes() == logits.sizes().slice(0, static_cast<size_t>(logits.dim() - 1)) &&
         logits.size(-1) > 0 && logits.numel() <= kMostElements;
}

Tensor matches_of_rows(const Tensor& labels, const Tensor& values) {
  const Tensor dense = values.contiguous();
  const Tensor expected = labels.contiguous();
  Tensor matches = at::empty(labels.sizes(), dense.options().dtype(at::kBool));
  dispatch_labels(expected, [&](auto zero) {
    const auto* const label = expected.data_ptr<decltype(zero)>();
    const auto [count, classes] = class_rows(dense);
    const float* row = dense.data_ptr<float>();
    for (int64_t i = 0; i < count; ++i, row += classes) {
      matches.data_ptr<bool>()[i] =
          place_of_largest(row, classes) == static_cast<int64_t>(label[i]);
    }
  });
  return matches;
}

Tensor crossentropy_of_rows(const Tensor& labels, const Tensor& logits) {
  const Tensor dense = logits.contiguous();
  const Tensor classes = labels.contiguous();
  Tensor losses = at::empty(labels.sizes(), dense.options());
  Tensor probabilities = at::empty(dense.sizes(), dense.options());
  const bool fits = dispatch_labels(classes, [&](auto zero) {
    return compute_losses(classes.data_ptr<decltype(zero)>(), dense, losses.data_ptr<float>(),
                          probabilities.data_ptr<float>());
  });
  if (!fits) return Tensor();
  if (at::GradMode::is_enabled() && dense.requires_grad()) {
    record(losses, edges_of(dense), make_node<CrossentropyNode>(classes, dense, probabilities));
  }
  return losses;
}

}  // namespace cohort::internal
