#include <ATen/ops/rnn_tanh.h>
#include <ATen/ops/zeros_like.h>

#include <tuple>

#include "cohort/keras/layers/recurrent/cell.h"

namespace cohort::keras::layers {
namespace {

class SimpleRNNCell final : public CellOf<SimpleRNN, SimpleRNNOptions> {
 public:
  SimpleRNNCell(int64_t units, SimpleRNNOptions options)
      : CellOf("SimpleRNN", units, /*gates=*/1, /*states=*/1, std::move(options)) {}

 protected:
  void build(const std::vector<Shape>& input_shapes) override {
    make_weights(input_shapes[0].back(), {sizes().units}, options_.bias_initializer);
  }

  std::optional<Run> run_fused(const Tensor& sequences,
                               const std::vector<Tensor>& state) const override {
    if (options_.activation.name() != "tanh") return std::nullopt;
    std::vector<Tensor> weights = {for_kernel(kernel_.value().t()),
                                   for_kernel(recurrent_.value().t())};
    if (bias_) weights.insert(weights.end(), {bias(), at::zeros_like(bias())});
    const auto [outputs, h] =
        at::rnn_tanh(sequences, state[0].unsqueeze(0), weights, /*has_biases=*/bias_ ? true : false,
                     /*num_layers=*/1, /*dropout=*/0, /*train=*/derives_in_training_alone(sequences), /*bidirectional=*/false,
                     /*batch_first=*/true);
    return Run{outputs, h.squeeze(0), {h.squeeze(0)}};
  }

  std::vector<Tensor> step(const Tensor& x, const std::vector<Tensor>& state,
                           const Recurrence& recurrence) const override {
    return {options_.activation(x + recurrence.all(state[0]))};
  }
};

}  // namespace

SimpleRNN::SimpleRNN(int64_t units, SimpleRNNOptions options)
    : LayerHandle(make_recurrent<SimpleRNNCell>("SimpleRNN", units, std::move(options))) {}

}  // namespace cohort::keras::layers

namespace cohort::internal {

keras::layers::LayerHandle read_simple_rnn(FieldReader& field) {
  return keras::layers::read_recurrent<keras::layers::SimpleRNN, keras::layers::SimpleRNNOptions>(
      field);
}

}  // namespace cohort::internal
