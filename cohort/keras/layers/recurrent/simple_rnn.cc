#include <ATen/ops/rnn_tanh.h>
#include <ATen/ops/zeros_like.h>

#include <tuple>

#include "cohort/keras/layers/recurrent/recurrent_layer.h"

namespace cohort::keras::layers {
namespace {

class SimpleRnnCellImpl final : public CellOf<SimpleRnnCellImpl, SimpleRNNOptions> {
 public:
  SimpleRnnCellImpl(int64_t units, SimpleRNNOptions options, const CellUse& use)
      : CellOf("SimpleRNNCell", units, /*gates=*/1, /*states=*/1, std::move(options), use) {}

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

  std::vector<Tensor> advance(const Tensor& x, const std::vector<Tensor>& state,
                           const Recurrence& recurrence) const override {
    return {options_.activation(x + recurrence.all(state[0]))};
  }
};

}  // namespace

SimpleRNN::SimpleRNN(int64_t units, SimpleRNNOptions options)
    : LayerHandle(std::make_shared<RecurrentOf<SimpleRNN, SimpleRnnCellImpl, SimpleRNNOptions>>(
          "SimpleRNN", units, options)) {}

SimpleRNNCell::SimpleRNNCell(int64_t units, SimpleRNNCellOptions options)
    : LayerHandle(std::make_shared<SimpleRnnCellImpl>(
          units, with_cell_options<SimpleRNNOptions>(options),
          CellUse{.maker = "SimpleRNNCell", .name = options.name})) {}

}  // namespace cohort::keras::layers

namespace cohort::internal {

keras::layers::LayerHandle read_simple_rnn(FieldReader& field) {
  return keras::layers::read_recurrent<keras::layers::SimpleRNN, keras::layers::SimpleRNNOptions>(
      field);
}

keras::layers::LayerHandle read_simple_rnn_cell(FieldReader& field) {
  using keras::layers::SimpleRNNCell, keras::layers::SimpleRNNCellOptions;
  return keras::layers::read_cell<SimpleRNNCell, SimpleRNNCellOptions>(field);
}

}  // namespace cohort::internal
