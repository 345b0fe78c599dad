#include "cohort/keras/layers/attention/additive_attention.h"

#include <utility>

#include "cohort/keras/layers/attention/dense_attention.h"
#include "cohort/keras/layers/base/layer_config.h"

namespace cohort::keras::layers {
namespace {

class AdditiveAttentionImpl final : public DenseAttention {
 public:
  explicit AdditiveAttentionImpl(const AdditiveAttentionOptions& options)
      : DenseAttention("AdditiveAttention", {.name = options.name, .dtype = options.dtype},
                       {options.dropout, options.use_causal_mask, options.return_attention_scores}),
        options_(options) {}

  std::optional<Config> get_config() const override {
    return internal::layer_config(*this,
                                  [this](auto& field) { dense_attention_fields(field, options_); });
  }

 protected:
  // Keras takes the size of the values, which must be that of the keys.
  void make_weights(const std::vector<Shape>& input_shapes) override {
    if (!options_.use_scale) return;
    scale_ = add_weight("scale", {input_shapes[1].back()}, {.initializer = "glorot_uniform"});
  }

  Tensor score(const Tensor& queries, const Tensor& keys) const override {
    const Tensor sums = (queries.unsqueeze(-2) + keys.unsqueeze(-3)).tanh();
    return scale_ ? sums.matmul(scale_.value()) : sums.sum(-1);
  }

 private:
  const AdditiveAttentionOptions options_;
  Variable scale_;
};

}  // namespace

AdditiveAttention::AdditiveAttention(AdditiveAttentionOptions options)
    : LayerHandle(std::make_shared<AdditiveAttentionImpl>(options)) {}

}  // namespace cohort::keras::layers

namespace cohort::internal {

namespace layers = keras::layers;

layers::LayerHandle read_additive_attention(FieldReader& field) {
  layers::AdditiveAttentionOptions options;
  field.common(options);
  layers::dense_attention_fields(field, options);
  return layers::AdditiveAttention(std::move(options));
}

}  // namespace cohort::internal
