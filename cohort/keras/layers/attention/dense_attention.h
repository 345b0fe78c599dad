// What Attention and AdditiveAttention have in common: all but how well a query fits a key. For
// sources only.
#pragma once

#include <vector>

#include "cohort/keras/layers/base/layer.h"

namespace cohort::keras::layers {

class DenseAttention : public Layer {
 public:
  struct Options {
    double dropout;
    bool use_causal_mask;
    bool return_attention_scores;
  };

 protected:
  // Errors: InvalidArgument (the dropout; names the class).
  DenseAttention(const char* class_name, LayerOptions layer_options, const Options& options);

  // [batch, t, d] and [batch, s, d] -> [batch, t, s]
  virtual Tensor score(const Tensor& queries, const Tensor& keys) const = 0;
  virtual void make_weights(const std::vector<Shape>& input_shapes) = 0;

  void build(const std::vector<Shape>& input_shapes) final;
  Structure call(const Structure& inputs, const CallOptions& options) final;

 private:
  // Errors: InvalidArgument (not two or three of one rank, 3 or more).
  void check_shapes(const std::vector<Shape>& shapes) const;
  Tensor mask_of_scores(const Tensor& scores, const Tensor& values) const;

  const Options options_;
};

// The fields that both have. In Keras the last two are options of the call, where functional models
// write them.
template <class Fields, class Options>
void dense_attention_fields(Fields& field, Options& options) {
  field("use_scale", options.use_scale);
  field("dropout", options.dropout);
  field.unless("use_causal_mask", options.use_causal_mask, false);
  field.unless("return_attention_scores", options.return_attention_scores, false);
}

}  // namespace cohort::keras::layers
