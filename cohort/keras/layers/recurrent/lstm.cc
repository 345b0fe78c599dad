#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/lstm.h>
#include <ATen/ops/zeros_like.h>

#include <tuple>

#include "cohort/keras/layers/recurrent/recurrent_layer.h"

namespace cohort::keras::layers {
namespace {

class LstmCellImpl final : public CellOf<LstmCellImpl, LSTMOptions> {
 public:
  LstmCellImpl(int64_t units, LSTMOptions options, const CellUse& use)
      : CellOf("LSTMCell", units, /*gates=*/4, /*states=*/2, std::move(options), use) {}

 protected:
  void build(const std::vector<Shape>& input_shapes) override {
    initializers::Initializer bias = options_.bias_initializer;
    if (options_.unit_forget_bias) {
      bias = initializers::Initializer(
          [given = bias, units = sizes().units](const Shape&, DType dtype) {
            return at::cat(
                {given({units}, dtype), at::full({units}, 1, dtype), given({2 * units}, dtype)});
          });
    }
    make_weights(input_shapes[0].back(), {4 * sizes().units}, bias);
  }

  // libtorch's gates have Keras's order.
  std::optional<Run> run_fused(const Tensor& sequences,
                               const std::vector<Tensor>& state) const override {
    if (!has_kernel()) return std::nullopt;
    std::vector<Tensor> weights = {for_kernel(kernel_.value().t()),
                                   for_kernel(recurrent_.value().t())};
    if (bias_) weights.insert(weights.end(), {bias(), at::zeros_like(bias())});
    const auto [outputs, h, c] =
        at::lstm(sequences, {state[0].unsqueeze(0), state[1].unsqueeze(0)}, weights,
                 /*has_biases=*/bias_ ? true : false, /*num_layers=*/1, /*dropout=*/0,
                 /*train=*/derives_in_training_alone(sequences), /*bidirectional=*/false, /*batch_first=*/true);
    return Run{outputs, h.squeeze(0), {h.squeeze(0), c.squeeze(0)}};
  }

  std::optional<internal::plan::Recurrent> planned() const override {
    if (!has_kernel()) return std::nullopt;
    return internal::plan::Recurrent{
        .cell = internal::plan::Cell::kLstm, .units = sizes().units, .bias = options_.use_bias};
  }

  std::vector<Tensor> advance(const Tensor& x, const std::vector<Tensor>& state,
                           const Recurrence& recurrence) const override {
    const auto& gate = options_.recurrent_activation;
    const std::vector<Tensor> z = (x + recurrence.all(state[0])).chunk(4, 1);
    const Tensor c = gate(z[1]) * state[1] + gate(z[0]) * options_.activation(z[2]);
    return {gate(z[3]) * options_.activation(c), c};
  }

 private:
  // Whether the formula is the one that libtorch and plans have.
  bool has_kernel() const {
    return options_.activation.name() == "tanh" &&
           options_.recurrent_activation.name() == "sigmoid";
  }
};

}  // namespace

LSTM::LSTM(int64_t units, LSTMOptions options)
    : LayerHandle(std::make_shared<RecurrentOf<LSTM, LstmCellImpl, LSTMOptions>>(
          "LSTM", units, options)) {}

LSTMCell::LSTMCell(int64_t units, LSTMCellOptions options)
    : LayerHandle(std::make_shared<LstmCellImpl>(
          units, with_cell_options<LSTMOptions>(options),
          CellUse{.maker = "LSTMCell", .name = options.name})) {}

}  // namespace cohort::keras::layers

namespace cohort::internal {

keras::layers::LayerHandle read_lstm(FieldReader& field) {
  return keras::layers::read_recurrent<keras::layers::LSTM, keras::layers::LSTMOptions>(field);
}

keras::layers::LayerHandle read_lstm_cell(FieldReader& field) {
  using keras::layers::LSTMCell, keras::layers::LSTMCellOptions;
  return keras::layers::read_cell<LSTMCell, LSTMCellOptions>(field);
}

}  // namespace cohort::internal
