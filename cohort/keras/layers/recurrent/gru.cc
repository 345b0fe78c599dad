#include <ATen/ops/cat.h>
#include <ATen/ops/gru.h>

#include <tuple>

#include "cohort/keras/layers/recurrent/recurrent_layer.h"

namespace cohort::keras::layers {
namespace {

class GruCellImpl final : public CellOf<GruCellImpl, GRUOptions> {
 public:
  GruCellImpl(int64_t units, GRUOptions options, const CellUse& use)
      : CellOf("GRUCell", units, /*gates=*/3, /*states=*/1, std::move(options), use) {}

 protected:
  void build(const std::vector<Shape>& input_shapes) override {
    const int64_t columns = 3 * sizes().units;
    make_weights(input_shapes[0].back(), options_.reset_after ? Shape{2, columns} : Shape{columns},
                 options_.bias_initializer);
  }

  std::optional<Run> run_fused(const Tensor& sequences,
                               const std::vector<Tensor>& state) const override {
    if (!has_kernel()) return std::nullopt;
    std::vector<Tensor> weights = {for_kernel(reordered(kernel_.value()).t()),
                                   for_kernel(reordered(recurrent_.value()).t())};
    if (bias_) {
      const Tensor both = reordered(bias());
      weights.insert(weights.end(), {both.select(0, 0), both.select(0, 1)});
    }
    const auto [outputs, h] =
        at::gru(sequences, state[0].unsqueeze(0), weights, /*has_biases=*/bias_ ? true : false,
                /*num_layers=*/1, /*dropout=*/0, /*train=*/derives_in_training_alone(sequences), /*bidirectional=*/false,
                /*batch_first=*/true);
    return Run{outputs, h.squeeze(0), {h.squeeze(0)}};
  }

  Tensor input_bias() const override { return two_biases() ? bias().select(0, 0) : bias(); }

  std::optional<internal::plan::Recurrent> planned() const override {
    if (!has_kernel()) return std::nullopt;
    return internal::plan::Recurrent{
        .cell = internal::plan::Cell::kGru, .units = sizes().units, .bias = options_.use_bias};
  }

  std::vector<Tensor> advance(const Tensor& inputs, const std::vector<Tensor>& state,
                           const Recurrence& recurrence) const override {
    const auto& gate = options_.recurrent_activation;
    const Tensor& h = state[0];
    const std::vector<Tensor> x = inputs.chunk(3, 1);
    Tensor z;
    Tensor candidate;
    if (options_.reset_after) {
      const Tensor recurrent_bias = two_biases() ? bias().select(0, 1) : Tensor();
      const std::vector<Tensor> u = plus(recurrence.all(h), recurrent_bias).chunk(3, 1);
      z = gate(x[0] + u[0]);
      candidate = x[2] + gate(x[1] + u[1]) * u[2];
    } else {
      z = gate(x[0] + recurrence.one(h, 0));
      candidate = x[2] + recurrence.one(gate(x[1] + recurrence.one(h, 1)) * h, 2);
    }
    return {z * h + (1 - z) * options_.activation(candidate)};
  }

 private:
  // Whether the formula is the one that libtorch and plans have.
  bool has_kernel() const {
    return options_.reset_after && options_.activation.name() == "tanh" &&
           options_.recurrent_activation.name() == "sigmoid";
  }
  bool two_biases() const { return options_.reset_after && bias_; }

  // libtorch has the reset gate before the update gate.
  static Tensor reordered(const Tensor& columns) {
    const std::vector<Tensor> parts = columns.chunk(3, -1);
    return at::cat({parts[1], parts[0], parts[2]}, -1);
  }
};

}  // namespace

GRU::GRU(int64_t units, GRUOptions options)
    : LayerHandle(std::make_shared<RecurrentOf<GRU, GruCellImpl, GRUOptions>>(
          "GRU", units, options)) {}

GRUCell::GRUCell(int64_t units, GRUCellOptions options)
    : LayerHandle(std::make_shared<GruCellImpl>(
          units, with_cell_options<GRUOptions>(options),
          CellUse{.maker = "GRUCell", .name = options.name})) {}

}  // namespace cohort::keras::layers

namespace cohort::internal {

keras::layers::LayerHandle read_gru(FieldReader& field) {
  return keras::layers::read_recurrent<keras::layers::GRU, keras::layers::GRUOptions>(field);
}

keras::layers::LayerHandle read_gru_cell(FieldReader& field) {
  using keras::layers::GRUCell, keras::layers::GRUCellOptions;
  return keras::layers::read_cell<GRUCell, GRUCellOptions>(field);
}

}  // namespace cohort::internal
