#include "cohort/keras/layers/attention/dense_attention.h"

#include <ATen/ops/ones.h>

#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/keras/base/masks.h"
#include "cohort/keras/layers/base/kept_elements.h"

namespace cohort::keras::layers {

using internal::str;

DenseAttention::DenseAttention(const char* class_name, LayerOptions layer_options,
                               const Options& options)
    : Layer(class_name, std::move(layer_options)), options_(options) {
  internal::check_rate(options.dropout, class_name, "dropout");
}

void DenseAttention::build(const std::vector<Shape>& input_shapes) {
  check_shapes(input_shapes);
  make_weights(input_shapes);
}

Structure DenseAttention::call(const Structure& inputs, const CallOptions& options) {
  std::vector<Tensor> tensors;
  std::vector<Shape> shapes;
  inputs.for_each([&](const Leaf& leaf) {
    tensors.push_back(leaf.tensor());
    shapes.push_back(leaf.sizes());
  });
  check_shapes(shapes);
  const Tensor& queries = tensors[0];
  const Tensor& values = tensors[1];
  Tensor scores = score(queries, tensors.size() > 2 ? tensors[2] : values);
  if (const Tensor mask = mask_of_scores(scores, values); mask.defined()) {
    const Tensor padding = mask.logical_not().to(scores.device(), scores.scalar_type());
    scores = scores + padding * internal::large_negative(scores);
  }
  scores = scores.softmax(-1);
  if (*options.training && options_.dropout > 0)
    scores = internal::dropped(scores, options_.dropout);
  Tensor result = scores.matmul(values);
  if (const Tensor mask = internal::mask_of(queries); mask.defined()) {
    result = internal::with_mask(result * internal::mask_factors(mask, result), mask);
  }
  if (!options_.return_attention_scores) return result;
  return Structure::make_tuple({result, scores});
}

// What counts in the scores, [batch, 1, s] or [batch, t, s] or [t, s]; undefined: all.
Tensor DenseAttention::mask_of_scores(const Tensor& scores, const Tensor& values) const {
  Tensor all = internal::mask_of(values);
  if (all.defined()) all = all.unsqueeze(-2);
  if (!options_.use_causal_mask) return all;
  const Tensor causal =
      at::ones({scores.size(-2), scores.size(-1)}, scores.options().dtype(at::kBool)).tril();
  return all.defined() ? all.logical_and(causal) : causal;
}

void DenseAttention::check_shapes(const std::vector<Shape>& shapes) const {
  bool fits = (shapes.size() == 2 || shapes.size() == 3) && shapes[0].size() >= 3;
  for (const Shape& shape : shapes) fits = fits && shape.size() == shapes[0].size();
  if (fits) return;
  std::string got;
  for (const Shape& shape : shapes) got += str(got.empty() ? "" : ", ", internal::shape_str(shape));
  throw InvalidArgumentError(
      str("layer '", name(),
          "' takes a tuple of queries [batch, t, d], values [batch, s, e] and "
          "perhaps keys [batch, s, d], but got ",
          got));
}

}  // namespace cohort::keras::layers
