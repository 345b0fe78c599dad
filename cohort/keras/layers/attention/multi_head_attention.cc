#include "cohort/keras/layers/attention/multi_head_attention.h"

#include <ATen/ops/ones.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/text.h"
#include "cohort/core/threads/lazy.h"
#include "cohort/keras/base/describe_leaves.h"
#include "cohort/keras/base/masks.h"
#include "cohort/keras/base/weighting.h"
#include "cohort/keras/layers/attention/einsum_dense.h"
#include "cohort/keras/layers/base/kept_elements.h"
#include "cohort/keras/layers/base/layer_config.h"

namespace cohort::keras::layers {
namespace {

using internal::str;

template <class Fields, class Number, class Options>
void attention_fields(Fields& field, Number& num_heads, Number& key_dim, Options& options) {
  field("num_heads", num_heads);
  field("key_dim", key_dim);
  field("value_dim", options.value_dim);
  field("dropout", options.dropout);
  field("use_bias", options.use_bias);
  field("kernel_initializer", options.kernel_initializer);
  field("bias_initializer", options.bias_initializer);
  field("kernel_regularizer", options.kernel_regularizer);
  field("bias_regularizer", options.bias_regularizer);
  field.always("activity_regularizer", nullptr);
  field("kernel_constraint", options.kernel_constraint);
  field("bias_constraint", options.bias_constraint);
  for (const char* shape : {"query_shape", "key_shape", "value_shape"}) {
    field.without_effect(shape, nullptr);
  }
  // In Keras these are options of the call, where functional models write them.
  field.unless("use_causal_mask", options.use_causal_mask, false);
  field.unless("return_attention_scores", options.return_attention_scores, false);
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
    for (const int64_t size : options_.output_shape) check("output_shape", size);
    if (options_.output_dim && !options_.output_shape.empty()) {
      throw InvalidArgumentError(
          str("MultiHeadAttention: output_dim is ", *options_.output_dim, " and output_shape is ",
              internal::shape_str(options_.output_shape), "; give one of them"));
    }
    internal::check_rate(options_.dropout, "MultiHeadAttention", "dropout");
    options_.dtype = dtype_policy();  // of its parts, too, which are made later
    set_input_spec({.min_rank = 2});
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(*this, [this](auto& field) {
      MultiHeadAttentionOptions options = options_;
      if (!options.value_dim) options.value_dim = key_dim_;
      attention_fields(field, num_heads_, key_dim_, options);
      if (options.output_shape.empty()) {
        field("output_shape", options.output_dim);
      } else {
        field("output_shape", options.output_shape);
      }
      const internal::Json axes = options.attention_axes;
      field.always("attention_axes", axes.empty() ? internal::Json() : axes);
    });
  }

 protected:
  void build(const std::vector<Shape>& input_shapes) override {
    const int64_t value_dim = options_.value_dim.value_or(key_dim_);
    query_.emplace(projection("_query_dense", "query", "...x,xyz->...yz", {num_heads_, key_dim_}));
    key_.emplace(projection("_key_dense", "key", "...x,xyz->...yz", {num_heads_, key_dim_}));
    value_.emplace(projection("_value_dense", "value", "...x,xyz->...yz", {num_heads_, value_dim}));
    Shape outputs = options_.output_shape;
    if (outputs.empty()) outputs = {options_.output_dim.value_or(input_shapes[0].back())};
    std::string letters;
    for (size_t i = 0; i < outputs.size(); ++i) letters += static_cast<char>('a' + i);
    output_.emplace(projection("_output_dense", "attention_output",
                               str("...xy,xy", letters, "->...", letters), outputs));
  }

  Structure call(const Structure& inputs, const CallOptions& options) override {
    std::vector<Tensor> tensors;
    inputs.for_each([&](const Leaf& leaf) { tensors.push_back(leaf.tensor()); });
    check_ranks(tensors, inputs);
    const Tensor& keys = tensors.size() > 2 ? tensors[2] : tensors[1];
    check_features(tensors[0], keys, tensors[1], inputs);
    const Axes axes = axes_for(tensors[0].dim());
    const Tensor projected = (*query_)(tensors[0], options);
    const Tensor query = axes.to_rows(projected) * (1 / std::sqrt(static_cast<double>(key_dim_)));
    const Tensor key_steps = (*key_)(keys, options);
    const Tensor key = axes.to_rows(key_steps);
    const Tensor value = axes.to_rows((*value_)(tensors[1], options));
    Tensor scores = query.matmul(key.transpose(-2, -1));
    const Shape sizes = axes.sizes_of_scores(projected, key_steps);
    if (const Tensor mask = mask_of_all(tensors, sizes, axes.count()); mask.defined()) {
      // A query that may attend to nothing attends to all alike, as in Keras.
      const double lowest = internal::large_negative(scores);
      const Tensor added = (1 - mask.to(scores.device(), scores.scalar_type())) * lowest;
      scores = (scores.reshape(sizes) + added).reshape(scores.sizes());
    }
    scores = scores.softmax(-1);
    const bool drops = *options.training && options_.dropout > 0;
    const Tensor weights = drops ? internal::dropped(scores, options_.dropout) : scores;
    const Tensor attended = axes.from_rows(weights.matmul(value), projected);
    const Tensor output = internal::keep_mask(tensors[0], (*output_)(attended, options));
    if (!options_.return_attention_scores) return output;
    return Structure::make_tuple({output, scores.reshape(sizes)});
  }

 private:
  // Brings the dimensions of what is projected, [batch, .., heads, dim], into the order of matrix
  // products, and back.
  class Axes {
   public:
    // attended: of the dimensions between the batch and the heads. rank: with heads and dim.
    Axes(Shape attended, int64_t rank) : attended_(std::move(attended)) {
      for (int64_t i = 0; i + 1 < rank; ++i) {
        if (std::find(attended_.begin(), attended_.end(), i) == attended_.end())
          order_.push_back(i);
      }
      rows_ = static_cast<int64_t>(order_.size());
      order_.insert(order_.end(), attended_.begin(), attended_.end());
      order_.push_back(rank - 1);
    }

    int64_t count() const { return static_cast<int64_t>(attended_.size()); }
    // -> [batch, others.., heads, all attended, dim]
    Tensor to_rows(const Tensor& x) const {
      return x.permute(order_).flatten(rows_, rows_ + count() - 1);
    }
    // The other way; `like` has the dimensions.
    Tensor from_rows(const Tensor& rows, const Tensor& like) const {
      Shape sizes(rows.sizes().begin(), rows.sizes().begin() + rows_);
      for (const int64_t axis : attended_) sizes.push_back(like.size(axis));
      sizes.push_back(rows.size(-1));
      Shape inverse(order_.size());
      for (size_t i = 0; i < order_.size(); ++i) {
        inverse[static_cast<size_t>(order_[i])] = static_cast<int64_t>(i);
      }
      return rows.reshape(sizes).permute(inverse);
    }
    // [batch, others.., heads, the queries' attended.., the keys' attended..]
    Shape sizes_of_scores(const Tensor& queries, const Tensor& keys) const {
      Shape sizes;
      for (int64_t i = 0; i < rows_; ++i) {
        sizes.push_back(queries.size(order_[static_cast<size_t>(i)]));
      }
      for (const int64_t axis : attended_) sizes.push_back(queries.size(axis));
      for (const int64_t axis : attended_) sizes.push_back(keys.size(axis));
      return sizes;
    }

   private:
    Shape attended_;
    Shape order_;
    int64_t rows_ = 0;
  };

  // rank: of the inputs. Errors: InvalidArgument (an axis that they do not have).
  Axes axes_for(int64_t rank) const {
    Shape attended;
    for (const int64_t axis : options_.attention_axes) {
      attended.push_back(axis < 0 ? axis + rank + 1 : axis);  // Keras counts heads and features
    }
    for (int64_t i = 1; options_.attention_axes.empty() && i < rank - 1; ++i) attended.push_back(i);
    for (const int64_t axis : attended) {
      const bool is_once = std::count(attended.begin(), attended.end(), axis) == 1;
      if (axis >= 1 && axis < rank - 1 && is_once) continue;
      throw InvalidArgumentError(str("layer '", name(), "': attention_axes is ",
                                     internal::shape_str(options_.attention_axes),
                                     ", but inputs of rank ", rank,
                                     " can attend over each of the axes 1 to ", rank - 2, " once"));
    }
    return {std::move(attended), rank + 1};
  }

  LayerHandle projection(const char* child, const char* name, std::string equation, Shape outputs) {
    std::string bias_axes;
    if (options_.use_bias) bias_axes = equation.substr(equation.rfind('.') + 1);
    LayerHandle layer = EinsumDense(std::move(equation), std::move(outputs),
                                    {.bias_axes = std::move(bias_axes),
                                     .kernel_initializer = options_.kernel_initializer,
                                     .bias_initializer = options_.bias_initializer,
                                     .kernel_regularizer = options_.kernel_regularizer,
                                     .bias_regularizer = options_.bias_regularizer,
                                     .kernel_constraint = options_.kernel_constraint,
                                     .bias_constraint = options_.bias_constraint,
                                     .dtype = options_.dtype,
                                     .name = name});
    track(child, layer);
    return layer;
  }

  void check_ranks(const std::vector<Tensor>& tensors, const Structure& inputs) const {
    bool fits = tensors.size() >= 2 && tensors.size() <= 4 && tensors[0].dim() >= 3;
    for (size_t i = 1; fits && i < std::min<size_t>(tensors.size(), 3); ++i) {
      fits = tensors[i].dim() == tensors[0].dim();
    }
    if (fits) return;
    throw InvalidArgumentError(str("layer '", name(),
                                   "' takes a tuple of queries and values "
                                   "[batch, steps, features], perhaps keys and a mask, but got ",
                                   internal::describe_leaves(inputs)));
  }

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
  // for what is the same for all. axes: how many dimensions queries have. Errors: InvalidArgument
  // (another shape).
  Tensor as_of_scores(const Tensor& mask, const Shape& sizes, int64_t axes) const {
    Tensor of_scores = mask;
    while (of_scores.dim() >= 2 * axes && of_scores.dim() < static_cast<int64_t>(sizes.size())) {
      of_scores = of_scores.unsqueeze(-2 * axes - 1);
    }
    const bool fits = of_scores.dim() == static_cast<int64_t>(sizes.size()) &&
                      internal::broadcasts_to(of_scores.sizes(), sizes);
    if (fits) return of_scores;
    Shape without_heads = {sizes[0]};
    without_heads.insert(without_heads.end(), sizes.end() - 2 * axes, sizes.end());
    throw InvalidArgumentError(
        str("layer '", name(), "': a mask of ", internal::shape_str(mask.sizes()),
            " does not say for [batch, queries, keys], here ", internal::shape_str(without_heads),
            ", what a query may attend to; give one of that shape, or with 1 "
            "for what is the same for all"));
  }

  // What a query may attend to, in the rank of the scores, with 1 for what is the same for all;
  // undefined: everything. The given mask, those of the sequences and the causal one together.
  Tensor mask_of_all(const std::vector<Tensor>& tensors, const Shape& sizes, int64_t axes) const {
    Tensor all;
    const auto add = [&](const Tensor& mask) {
      const Tensor of_scores = as_of_scores(mask, sizes, axes);
      all = all.defined() ? all.logical_and(of_scores) : of_scores;
    };
    if (tensors.size() == 4) add(tensors[3]);
    for (size_t i = 0; i < std::min<size_t>(tensors.size(), 3); ++i) {
      const Tensor mask = internal::mask_of(tensors[i]);
      if (mask.defined()) add(mask.unsqueeze(i == 0 ? 2 : 1));
    }
    if (options_.use_causal_mask) {
      add(at::ones({1, tensors[0].size(1), tensors[1].size(1)},
                   tensors[0].options().dtype(at::kBool))
              .tril());
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
  if (const Json* sizes = field.find("output_shape"); sizes != nullptr && sizes->is_array()) {
    read_field(*sizes, options.output_shape, quoted("output_shape"));
  } else {
    field("output_shape", options.output_dim);
  }
  if (const Json* axes = field.find("attention_axes"); axes != nullptr && axes->is_number()) {
    read_field(*axes, options.attention_axes.emplace_back(), quoted("attention_axes"));
  } else if (axes != nullptr && !axes->is_null()) {
    read_field(*axes, options.attention_axes, quoted("attention_axes"));
  }
  return layers::MultiHeadAttention(num_heads, key_dim, std::move(options));
}

}  // namespace cohort::internal
