#include "cohort/keras/layers/recurrent.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gru.h>
#include <ATen/ops/lstm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <tuple>
#include <utility>
#include <vector>

#include "cohort/keras/layers/describe_leaves.h"
#include "cohort/keras/saving/layer_config.h"

namespace cohort::keras::layers {
namespace {

using internal::str;

// What a sequence comes to: the outputs of all steps [batch, steps, units], in the order in which
// they were taken, and the state after the last.
struct Run {
  Tensor outputs;
  std::vector<Tensor> state;
};

template <class Fields, class Units, class Options>
void recurrent_fields(Fields& field, Units& units, Options& options) {
  field("return_sequences", options.return_sequences);
  field("return_state", options.return_state);
  field("go_backwards", options.go_backwards);
  field.always("stateful", false);
  field.without_effect("unroll", false);
  field.always("time_major", false);
  field("units", units);
  field("activation", options.activation);
  field("recurrent_activation", options.recurrent_activation);
  field("use_bias", options.use_bias);
  field("kernel_initializer", options.kernel_initializer);
  field("recurrent_initializer", options.recurrent_initializer);
  field("bias_initializer", options.bias_initializer);
  field("kernel_regularizer", options.kernel_regularizer);
  field("recurrent_regularizer", options.recurrent_regularizer);
  field("bias_regularizer", options.bias_regularizer);
  for (const char* none :
       {"activity_regularizer", "kernel_constraint", "recurrent_constraint", "bias_constraint"}) {
    field.always(none, nullptr);
  }
  field.always("dropout", 0.0);
  field.always("recurrent_dropout", 0.0);
  field.without_effect("implementation", 2);
  if constexpr (requires { options.unit_forget_bias; }) {
    field("unit_forget_bias", options.unit_forget_bias);
  } else {
    field("reset_after", options.reset_after);
  }
}

// The weights, under the names that Keras's cells have, and the formula.
class Cell : public Layer {
 public:
  struct Sizes {
    int64_t units;
    int64_t gates;
    int64_t states;
  };
  Cell(std::string class_name, const Sizes& sizes, std::optional<DType> dtype)
      : Layer(std::move(class_name), {.dtype = dtype}), sizes_(sizes) {}

  virtual Run run(const Tensor& sequences, const std::vector<Tensor>& state) const = 0;
  virtual void write_fields(internal::FieldWriter& field) const = 0;
  const Sizes& sizes() const { return sizes_; }

 protected:
  template <class Options>
  void make_weights(const Options& options, int64_t features, const Shape& bias_shape,
                    const initializers::Initializer& bias_initializer) {
    const int64_t columns = sizes_.gates * sizes_.units;
    kernel_ = add_weight(
        "kernel", {features, columns},
        {.initializer = options.kernel_initializer, .regularizer = options.kernel_regularizer});
    recurrent_ = add_weight("recurrent_kernel", {sizes_.units, columns},
                            {.initializer = options.recurrent_initializer,
                             .regularizer = options.recurrent_regularizer});
    if (!options.use_bias) return;
    bias_ = add_weight("bias", bias_shape,
                       {.initializer = bias_initializer, .regularizer = options.bias_regularizer});
  }
  // Builds the cell; its formula is `run`.
  Tensor call(const Tensor& input, const CallOptions&) override { return input; }

  Tensor bias() const { return bias_ ? bias_.value() : Tensor(); }
  static Tensor plus(const Tensor& x, const Tensor& bias) { return bias.defined() ? x + bias : x; }

  Variable kernel_;
  Variable recurrent_;
  Variable bias_;

 private:
  const Sizes sizes_;
};

class LSTMCell final : public Cell {
 public:
  LSTMCell(int64_t units, LSTMOptions options)
      : Cell("LSTMCell", {units, 4, 2}, options.dtype), options_(std::move(options)) {}

  void write_fields(internal::FieldWriter& field) const override {
    recurrent_fields(field, sizes().units, options_);
  }

  Run run(const Tensor& sequences, const std::vector<Tensor>& state) const override {
    return options_.activation.name() == "tanh" && options_.recurrent_activation.name() == "sigmoid"
               ? run_fused(sequences, state)
               : run_steps(sequences, state);
  }

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
    make_weights(options_, input_shapes[0].back(), {4 * sizes().units}, bias);
  }

 private:
  // libtorch's gates have Keras's order.
  Run run_fused(const Tensor& sequences, const std::vector<Tensor>& state) const {
    std::vector<Tensor> weights = {kernel_.value().t(), recurrent_.value().t()};
    if (bias_) weights.insert(weights.end(), {bias(), at::zeros_like(bias())});
    const auto [outputs, h, c] =
        at::lstm(sequences, {state[0].unsqueeze(0), state[1].unsqueeze(0)}, weights,
                 /*has_biases=*/bias_ ? true : false, /*num_layers=*/1, /*dropout=*/0,
                 /*train=*/false, /*bidirectional=*/false, /*batch_first=*/true);
    return {outputs, {h.squeeze(0), c.squeeze(0)}};
  }

  Run run_steps(const Tensor& sequences, const std::vector<Tensor>& state) const {
    const Tensor inputs = plus(sequences.matmul(kernel_.value()), bias());
    const Tensor recurrent = recurrent_.value();
    Tensor h = state[0];
    Tensor c = state[1];
    std::vector<Tensor> outputs;
    for (int64_t step = 0; step < sequences.size(1); ++step) {
      const std::vector<Tensor> z = (inputs.select(1, step) + h.matmul(recurrent)).chunk(4, 1);
      const auto& gate = options_.recurrent_activation;
      c = gate(z[1]) * c + gate(z[0]) * options_.activation(z[2]);
      h = gate(z[3]) * options_.activation(c);
      outputs.push_back(h);
    }
    return {at::stack(outputs, 1), {h, c}};
  }

  const LSTMOptions options_;
};

class GRUCell final : public Cell {
 public:
  GRUCell(int64_t units, GRUOptions options)
      : Cell("GRUCell", {units, 3, 1}, options.dtype), options_(std::move(options)) {}

  void write_fields(internal::FieldWriter& field) const override {
    recurrent_fields(field, sizes().units, options_);
  }

  Run run(const Tensor& sequences, const std::vector<Tensor>& state) const override {
    const bool fused = options_.reset_after && options_.activation.name() == "tanh" &&
                       options_.recurrent_activation.name() == "sigmoid";
    return fused ? run_fused(sequences, state) : run_steps(sequences, state);
  }

 protected:
  void build(const std::vector<Shape>& input_shapes) override {
    const int64_t columns = 3 * sizes().units;
    make_weights(options_, input_shapes[0].back(),
                 options_.reset_after ? Shape{2, columns} : Shape{columns},
                 options_.bias_initializer);
  }

 private:
  // libtorch has the reset gate before the update gate.
  static Tensor reordered(const Tensor& columns) {
    const std::vector<Tensor> parts = columns.chunk(3, -1);
    return at::cat({parts[1], parts[0], parts[2]}, -1);
  }

  Run run_fused(const Tensor& sequences, const std::vector<Tensor>& state) const {
    std::vector<Tensor> weights = {reordered(kernel_.value()).t(),
                                   reordered(recurrent_.value()).t()};
    if (bias_) {
      const Tensor both = reordered(bias());
      weights.insert(weights.end(), {both.select(0, 0), both.select(0, 1)});
    }
    const auto [outputs, h] =
        at::gru(sequences, state[0].unsqueeze(0), weights, /*has_biases=*/bias_ ? true : false,
                /*num_layers=*/1, /*dropout=*/0, /*train=*/false, /*bidirectional=*/false,
                /*batch_first=*/true);
    return {outputs, {h.squeeze(0)}};
  }

  Run run_steps(const Tensor& sequences, const std::vector<Tensor>& state) const {
    const bool after = options_.reset_after;
    const Tensor input_bias = after && bias_ ? bias().select(0, 0) : bias();
    const Tensor inputs = plus(sequences.matmul(kernel_.value()), input_bias);
    const Tensor recurrent_bias = after && bias_ ? bias().select(0, 1) : Tensor();
    const std::vector<Tensor> kernels = recurrent_.value().chunk(3, 1);
    const auto& gate = options_.recurrent_activation;
    Tensor h = state[0];
    std::vector<Tensor> outputs;
    for (int64_t step = 0; step < sequences.size(1); ++step) {
      const std::vector<Tensor> x = inputs.select(1, step).chunk(3, 1);
      Tensor candidate;
      Tensor z;
      if (after) {
        const std::vector<Tensor> u =
            plus(h.matmul(recurrent_.value()), recurrent_bias).chunk(3, 1);
        z = gate(x[0] + u[0]);
        candidate = x[2] + gate(x[1] + u[1]) * u[2];
      } else {
        z = gate(x[0] + h.matmul(kernels[0]));
        candidate = x[2] + (gate(x[1] + h.matmul(kernels[1])) * h).matmul(kernels[2]);
      }
      h = z * h + (1 - z) * options_.activation(candidate);
      outputs.push_back(h);
    }
    return {at::stack(outputs, 1), {h}};
  }

  const GRUOptions options_;
};

struct RecurrentOptions {
  bool return_sequences;
  bool return_state;
  bool go_backwards;
};

// Takes a tuple apart and puts one together.
class RecurrentImpl final : public Layer {
 public:
  RecurrentImpl(const char* class_name, LayerOptions layer_options, std::shared_ptr<Cell> cell,
                const RecurrentOptions& options)
      : Layer(class_name, std::move(layer_options)), cell_(std::move(cell)), options_(options) {
    if (cell_->sizes().units < 1) {
      throw InvalidArgumentError(str(class_name, ": units is ", cell_->sizes().units, ", below 1"));
    }
    track("cell", LayerHandle(cell_));
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(
        *this, [this](internal::FieldWriter& field) { cell_->write_fields(field); });
  }

 protected:
  Structure call(const Structure& inputs, const CallOptions& call_options) override {
    std::vector<Tensor> tensors;
    inputs.for_each([&](const Leaf& leaf) { tensors.push_back(leaf.tensor().to(dtype())); });
    check(tensors, inputs);
    Tensor sequences = tensors[0];
    (*cell_)(sequences, call_options);  // builds it
    if (options_.go_backwards) sequences = sequences.flip(1);
    std::vector<Tensor> state(tensors.begin() + 1, tensors.end());
    while (state.size() < static_cast<size_t>(cell_->sizes().states)) {
      state.push_back(at::zeros({sequences.size(0), cell_->sizes().units}, sequences.options()));
    }
    const Run run = cell_->run(sequences, state);
    const Tensor output = options_.return_sequences ? run.outputs : run.state[0];
    if (!options_.return_state) return output;
    std::vector<Structure> members = {output};
    members.insert(members.end(), run.state.begin(), run.state.end());
    return Structure::make_tuple(std::move(members));
  }

 private:
  void check(const std::vector<Tensor>& tensors, const Structure& inputs) const {
    const auto with_state = static_cast<size_t>(cell_->sizes().states + 1);
    const bool right_number = tensors.size() == 1 || tensors.size() == with_state;
    if (right_number && tensors[0].dim() == 3 && tensors[0].size(1) > 0) return;
    throw InvalidArgumentError(str("layer '", name(),
                                   "' takes [batch, steps, features] with one "
                                   "step or more, or a tuple of it and ",
                                   with_state - 1, " initial states, but got ",
                                   internal::describe_leaves(inputs)));
  }

  std::shared_ptr<Cell> cell_;
  RecurrentOptions options_;
};

template <class CellType, class Options>
std::shared_ptr<RecurrentImpl> make_recurrent(const char* class_name, int64_t units,
                                              Options options) {
  const RecurrentOptions recurrent{options.return_sequences, options.return_state,
                                   options.go_backwards};
  LayerOptions layer{.name = options.name, .dtype = options.dtype};
  return std::make_shared<RecurrentImpl>(class_name, std::move(layer),
                                         std::make_shared<CellType>(units, std::move(options)),
                                         recurrent);
}

}  // namespace

LSTM::LSTM(int64_t units, LSTMOptions options)
    : LayerHandle(make_recurrent<LSTMCell>("LSTM", units, std::move(options))) {}

GRU::GRU(int64_t units, GRUOptions options)
    : LayerHandle(make_recurrent<GRUCell>("GRU", units, std::move(options))) {}

}  // namespace cohort::keras::layers

namespace cohort::internal {

namespace layers = keras::layers;

namespace {

template <class Recurrent, class Options>
layers::LayerHandle read_recurrent(FieldReader& field) {
  int64_t units = 0;
  Options options;
  field.common(options);
  layers::recurrent_fields(field, units, options);
  return Recurrent(units, std::move(options));
}

}  // namespace

layers::LayerHandle read_lstm(FieldReader& field) {
  return read_recurrent<layers::LSTM, layers::LSTMOptions>(field);
}
layers::LayerHandle read_gru(FieldReader& field) {
  return read_recurrent<layers::GRU, layers::GRUOptions>(field);
}

}  // namespace cohort::internal
