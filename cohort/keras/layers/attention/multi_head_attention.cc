#include "cohort/keras/layers/attention/multi_head_attention.h"

#include <ATen/ops/ones.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "cohort/core/text.h"
#include "cohort/core/threads/lazy.h"
#include "cohort/keras/base/describe_leaves.h"
#include "cohort/keras/base/masks.h"
#include "cohort/keras/base/weighting.h"
#include "cohort/keras/layers/base/kept_elements.h"
#include "cohort/keras/layers/base/layer_config.h"

namespace cohort::keras::layers {
namespace {

using internal::str;

// Projects the last dimensions of its input, as Keras's EinsumDense: [.., in..] . kernel
// [in.., out..] + bias [out..].
class Projection final : public Layer {
 public:
  // in: how many dimensions of the input are summed over.
  Projection(size_t in, Shape out, const MultiHeadAttentionOptions& options)
      : Layer("EinsumDense", {.dtype = options.dtype}),
        in_(in),
        out_(std::move(out)),
        options_(options) {}

 protected:
  void build(const std::vector<Shape>& input_shapes) override {
    Shape kernel(input_shapes[0].end() - static_cast<int64_t>(in_), input_shapes[0].end());
    kernel.insert(kernel.end(), out_.begin(), out_.end());
    kernel_ = add_weight(
        "kernel", kernel,
        {.initializer = options_.kernel_initializer, .regularizer = options_.kernel_regularizer});
    if (!options_.use_bias) return;
    bias_ = add_weight(
        "bias", out_,
        {.initializer = options_.bias_initializer, .regularizer = options_.bias_regularizer});
  }

  Tensor call(const Tensor& input, const CallOptions&) override {
    const auto kept = static_cast<size_t>(input.dim()) - in_;
    Shape sizes(input.sizes().begin(), input.sizes().begin() + static_cast<int64_t>(kept));
    sizes.insert(sizes.end(), out_.begin(), out_.end());
    const Tensor kernel = kernel_.value().flatten(0, static_cast<int64_t>(in_) - 1).flatten(1);
    const Tensor x = in_compute_dtype(input).flatten(static_cast<int64_t>(kept));
    const Tensor y = x.matmul(kernel).reshape(sizes);
    return bias_ ? y + bias_.value() : y;
  }

 private:
  size_t in_;
  Shape out_;
  MultiHeadAttentionOptions options_;
  Variable kernel_;
  Variable bias_;
};

template <class Fields, class Number, class Options>
void attention_fields(Fields& field, Number& num_heads, Number& key_dim, Options& options) {
  field("num_heads", num_heads);
  field("key_dim", key_dim);
  field("value_dim", options.value_dim);
  field("dropout", options.dropout);
  field("output_shape", options.output_dim);
  field.without_effect("attention_axes", nullptr);
  field("use_bias", options.use_bias);
  field("kernel_initializer", options.kernel_initializer);
  field("bias_initializer", options.bias_initializer);
  field("kernel_regularizer", options.kernel_regularizer);
  field("bias_regularizer", options.bias_regularizer);
  field.always("activity_regularizer", nullptr);
  field.always("kernel_constraint", nullptr);
  field.always("bias_constraint", nullptr);
  for (const char* shape : {"query_shape", "key_shape", "value_shape"}) {
    field.without_effect(shape, nullptr);
  }
  // In Keras it is an option of the call, where functional models write it.
  field.unless("use_causal_mask", options.use_causal_mask, false);
}

class MultiHeadAttentionImpl final : public Layer {
 public:
  MultiHeadAttentionImpl(int64_t num_heads, int64_t key_dim, MultiHeadAttentionOptions options)
      : Layer("MultiHeadAttention", {.name = options.name, .dtype = options.dtype}),
        num_heads_(num_heads),
        key_dim_(key_dim),
        options_(std::move(options)) {
    check("num_heads", num_heads);
    check("key_dim", key_dim);
    check("value_dim", options_.value_dim.value_or(1));
    check("output_dim", options_.output_dim.value_or(1));
    options_.dtype = dtype_policy();  // of its parts, too, which are made later
    internal::check_rate(options_.dropout, "MultiHeadAttention", "dropout");
    set_input_spec({.min_rank = 2});
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(*this, [this](auto& field) {
      MultiHeadAttentionOptions options = options_;
      if (!options.value_dim) options.value_dim = key_dim_;
      attention_fields(field, num_heads_, key_dim_, options);
    });
  }

 protected:
  void build(const std::vector<Shape>& input_shapes) override {
    const int64_t value_dim = options_.value_dim.value_or(key_dim_);
    const auto projection = [&](const char* child, size_t in, Shape out) {
      LayerHandle layer(std::make_shared<Projection>(in, std::move(out), options_));
      track(child, layer);
      return layer;
    };
    query_.emplace(projection("_query_dense", 1, {num_heads_, key_dim_}));
    key_.emplace(projection("_key_dense", 1, {num_heads_, key_dim_}));
    value_.emplace(projection("_value_dense", 1, {num_heads_, value_dim}));
    output_.emplace(
        projection("_output_dense", 2, {options_.output_dim.value_or(input_shapes[0].back())}));
  }

  Structure call(const Structure& inputs, const CallOptions& options) override {
    std::vector<Tensor> tensors;
    inputs.for_each([&](const Leaf& leaf) { tensors.push_back(leaf.tensor()); });
    if (tensors.size() < 2 || tensors.size() > 4 || tensors[0].dim() != 3 ||
        tensors[1].dim() != 3) {
      throw InvalidArgumentError(str("layer '", name(),
                                     "' takes a tuple of queries and values "
                                     "[batch, steps, features], perhaps keys and a mask, but got ",
                                     internal::describe_leaves(inputs)));
    }
    const Tensor& keys = tensors.size() > 2 ? tensors[2] : tensors[1];
    check_features(tensors[0], keys, tensors[1], inputs);
    // [batch, steps, heads, dim] -> [batch, heads, steps, dim]
    const auto heads = [&](LayerHandle& layer, const Tensor& x) {
      return layer(x, options).transpose(1, 2);
    };
    const Tensor query =
        heads(*query_, tensors[0]) * (1 / std::sqrt(static_cast<double>(key_dim_)));
    const Tensor key = heads(*key_, keys);
    const Tensor value = heads(*value_, tensors[1]);
    Tensor scores = query.matmul(key.transpose(2, 3));
    if (const Tensor mask = mask_of_all(tensors, scores); mask.defined()) {
      // A query that may attend to nothing attends to all alike, as in Keras.
      scores = scores + (1 - mask.to(scores.scalar_type())) * internal::large_negative(scores);
    }
    scores = scores.softmax(-1);
    if (*options.training && options_.dropout > 0) {
      scores = internal::dropped(scores, options_.dropout);
    }
    return internal::keep_mask(tensors[0],
                               (*output_)(scores.matmul(value).transpose(1, 2), options));
  }

 private:
  // They are those for which the layer was built.
  void check_features(const Tensor& queries, const Tensor& keys, const Tensor& values,
                      const Structure& inputs) {
    const Features own{queries.size(-1), keys.size(-1), values.size(-1)};
    const Features& built = features_.get([&] { return own; });
    if (own == built) return;
    throw InvalidArgumentError(str("layer '", name(),
                                   "' was built for queries, keys and values of ", built.queries,
                                   ", ", built.keys, " and ", built.values, " features, but got ",
                                   internal::describe_leaves(inputs)));
  }
  void check(const char* option, int64_t value) const {
    if (value > 0) return;
    throw InvalidArgumentError(
        str("MultiHeadAttention: ", option, " is ", value, "; it must be above 0"));
  }
  // [queries, keys], [batch, queries, keys] or [batch, heads, queries, keys] -> the last, with 1
  // for what is the same for all. Errors: InvalidArgument (another shape).
  Tensor as_of_scores(const Tensor& mask, const Tensor& scores) const {
    Tensor of_scores = mask;
    while (of_scores.dim() >= 2 && of_scores.dim() < 4) of_scores = of_scores.unsqueeze(-3);
    if (of_scores.dim() == 4 && internal::broadcasts_to(of_scores.sizes(), scores.sizes())) {
      return of_scores;
    }
    throw InvalidArgumentError(
        str("layer '", name(), "': a mask of ", internal::shape_str(mask.sizes()),
            " does not say for [batch, queries, keys], here [", scores.size(0), ",", scores.size(2),
            ",", scores.size(3),
            "], what a query may attend to; give one of that shape, or with 1 "
            "for what is the same for all"));
  }

  // What a query may attend to, [batch, heads, queries, keys] or with 1 in their place; undefined:
  // all. The mask that is given, those of the sequences, the causal one, together.
  Tensor mask_of_all(const std::vector<Tensor>& tensors, const Tensor& scores) const {
    Tensor all;
    const auto add = [&all](const Tensor& mask) {
      all = all.defined() ? all.logical_and(mask) : mask;
    };
    if (tensors.size() == 4) add(as_of_scores(tensors[3], scores));
    for (size_t i = 0; i < std::min<size_t>(tensors.size(), 3); ++i) {
      const Tensor mask = internal::mask_of(tensors[i]);
      if (mask.defined()) add(mask.unsqueeze(1).unsqueeze(i == 0 ? 3 : 2));
    }
    if (options_.use_causal_mask) {
      add(at::ones({1, 1, scores.size(2), scores.size(3)}, scores.options()).tril());
    }
    return all;
  }

  struct Features {
    int64_t queries;
    int64_t keys;
    int64_t values;
    bool operator==(const Features&) const = default;
  };

  int64_t num_heads_;
  int64_t key_dim_;
  internal::Lazy<Features> features_;  // of the first call
  MultiHeadAttentionOptions options_;
  std::optional<LayerHandle> query_;
  std::optional<LayerHandle> key_;
  std::optional<LayerHandle> value_;
  std::optional<LayerHandle> output_;
};

}  // namespace

MultiHeadAttention::MultiHeadAttention(int64_t num_heads, int64_t key_dim,
                                       MultiHeadAttentionOptions options)
    : LayerHandle(
          std::make_shared<MultiHeadAttentionImpl>(num_heads, key_dim, std::move(options))) {}

}  // namespace cohort::keras::layers

namespace cohort::internal {

namespace layers = keras::layers;

layers::LayerHandle read_multi_head_attention(FieldReader& field) {
  int64_t num_heads = 0;
  int64_t key_dim = 0;
  layers::MultiHeadAttentionOptions options;
  field.common(options);
  layers::attention_fields(field, num_heads, key_dim, options);
  return layers::MultiHeadAttention(num_heads, key_dim, std::move(options));
}

}  // namespace cohort::internal
