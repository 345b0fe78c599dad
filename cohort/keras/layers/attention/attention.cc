#include "cohort/keras/layers/attention/attention.h"

#include <utility>

#include "cohort/core/text.h"
#include "cohort/keras/layers/attention/dense_attention.h"
#include "cohort/keras/layers/base/layer_config.h"

namespace cohort::keras::layers {
namespace {

class AttentionImpl final : public DenseAttention {
 public:
  explicit AttentionImpl(const AttentionOptions& options)
      : DenseAttention("Attention", {.name = options.name, .dtype = options.dtype},
                       {options.dropout, options.use_causal_mask, options.return_attention_scores}),
        options_(options) {
    if (options.score_mode == "dot" || options.score_mode == "concat") return;
    throw InvalidArgumentError(internal::str("Attention: score_mode is ",
                                             internal::quoted(options.score_mode),
                                             "; it must be 'dot' or 'concat'"));
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(*this, [this](internal::FieldWriter& field) {
      dense_attention_fields(field, options_);
      field("score_mode", options_.score_mode);
    });
  }

 protected:
  void make_weights(const std::vector<Shape>&) override {
    if (options_.use_scale) scale_ = add_weight("scale", {}, {.initializer = "ones"});
    if (options_.score_mode == "dot") return;
    concat_score_weight_ = add_weight("concat_score_weight", {}, {.initializer = "ones"});
  }

  Tensor score(const Tensor& queries, const Tensor& keys) const override {
    const auto scaled = [this](const Tensor& x) { return scale_ ? x * scale_.value() : x; };
    if (options_.score_mode == "dot") return scaled(queries.matmul(keys.transpose(-2, -1)));
    const Tensor sums = queries.unsqueeze(-2) + keys.unsqueeze(-3);
    return concat_score_weight_.value() * scaled(sums).tanh().sum(-1);
  }

 private:
  const AttentionOptions options_;
  Variable scale_;
  Variable concat_score_weight_;
};

}  // namespace

Attention::Attention(AttentionOptions options)
    : LayerHandle(std::make_shared<AttentionImpl>(options)) {}

}  // namespace cohort::keras::layers

namespace cohort::internal {

namespace layers = keras::layers;

layers::LayerHandle read_attention(FieldReader& field) {
  layers::AttentionOptions options;
  field.common(options);
  layers::dense_attention_fields(field, options);
  field("score_mode", options.score_mode);
  return layers::Attention(std::move(options));
}

}  // namespace cohort::internal
