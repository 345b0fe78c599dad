// The cells of recurrent layers: weights under the names that Keras's cells have, and the formula
// of a step. For sources only.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/keras/base/replica_tensors.h"
#include "cohort/keras/layers/base/kept_elements.h"
#include "cohort/keras/layers/base/layer_config.h"
#include "cohort/keras/layers/base/operation.h"
#include "cohort/keras/layers/recurrent/recurrent.h"

namespace cohort::keras::layers {

// A way over sequences.
struct Pass {
  Tensor sequences;           // [batch, steps, features], in the order in which the steps are taken
  std::vector<Tensor> state;  // [batch, units] each
  Tensor mask;                // [batch, steps] in that order, bool; undefined: all steps count
  // The output of a step that does not count: zeros, or that of the step before.
  bool zeros_where_masked = false;
  bool training = false;
};

// What it comes to.
struct Run {
  Tensor outputs;  // [batch, steps, units]
  Tensor last;     // [batch, units]
  std::vector<Tensor> state;
};

// A weight as libtorch's fused kernels take it: cuDNN's want contiguous ones, the CPU's any.
inline Tensor for_kernel(const Tensor& weight) {
  return weight.is_cpu() ? weight : weight.contiguous();
}

// Whether the fused kernels for these sequences have a gradient in training mode alone, as cuDNN's.
inline bool derives_in_training_alone(const Tensor& sequences) { return !sequences.is_cpu(); }

// Products of a state and the recurrent kernel, a part for each gate.
struct Recurrence {
  Tensor kernel;  // [units, gates * units]
  Tensor kept;    // [gates, batch, units]: what recurrent dropout leaves, scaled; undefined: all
  int64_t gates;

  // [batch, units] -> [batch, gates * units]
  Tensor all(const Tensor& h) const;
  // [batch, units] -> [batch, units]
  Tensor one(const Tensor& h, int64_t gate) const;
};

class Cell : public Layer {
 public:
  struct Sizes {
    int64_t units;
    int64_t gates;
    int64_t states;
  };
  struct Dropouts {
    double inputs;
    double states;
  };
  Cell(std::string class_name, const Sizes& sizes, const Dropouts& dropouts,
       std::optional<mixed_precision::Policy> dtype)
      : Layer(std::move(class_name), {.dtype = dtype}), sizes_(sizes), dropouts_(dropouts) {}

  Run run(const Pass& pass) const;
  virtual void write_fields(internal::FieldWriter& field) const = 0;
  // A new layer like the one that this cell is of, perhaps in the other direction.
  virtual LayerHandle layer_again(const std::string& name, bool reversed) const = 0;
  const Sizes& sizes() const { return sizes_; }
  // For which it was built.
  int64_t features() const { return kernel_.shape()[0]; }
  // What plans know of it: the way over sequences without a mask, from a state of zeros.
  internal::LayerOperation operation(bool sequences, bool backwards) const;

 protected:
  // For plans, but for the way over a sequence; nothing where they do not know the cell's formula.
  virtual std::optional<internal::plan::Recurrent> planned() const { return std::nullopt; }
  // x: [batch, gates * units], the part of the inputs. Returns the new state.
  virtual std::vector<Tensor> step(const Tensor& x, const std::vector<Tensor>& state,
                                   const Recurrence& recurrence) const = 0;
  // Runs a kernel of libtorch; nullopt where there is none for the cell's options.
  virtual std::optional<Run> run_fused(const Tensor& sequences,
                                       const std::vector<Tensor>& state) const = 0;
  // What is added to the inputs' part. May be undefined.
  virtual Tensor input_bias() const { return bias(); }

  // Builds the cell; its formula is `run`.
  Tensor call(const Tensor& input, const CallOptions&) override { return input; }

  Tensor bias() const { return bias_ ? bias_.value() : Tensor(); }
  static Tensor plus(const Tensor& x, const Tensor& bias) { return bias.defined() ? x + bias : x; }

  Variable kernel_;
  Variable recurrent_;
  Variable bias_;

 private:
  Run run_steps(const Pass& pass, const Tensor& sequences, const Recurrence& recurrence) const;

  const Sizes sizes_;
  const Dropouts dropouts_;
};

// In the order in which Keras writes them.
template <class Fields, class Units, class Options>
void recurrent_fields(Fields& field, Units& units, Options& options) {
  field("return_sequences", options.return_sequences);
  field("return_state", options.return_state);
  field("go_backwards", options.go_backwards);
  field("stateful", options.stateful);
  field.without_effect("unroll", false);
  field.always("time_major", false);
  field("units", units);
  field("activation", options.activation);
  if constexpr (requires { options.recurrent_activation; }) {
    field("recurrent_activation", options.recurrent_activation);
    field.without_effect("implementation", 2);
  }
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
  field("dropout", options.dropout);
  field("recurrent_dropout", options.recurrent_dropout);
  if constexpr (requires { options.unit_forget_bias; }) {
    field("unit_forget_bias", options.unit_forget_bias);
  }
  if constexpr (requires { options.reset_after; }) field("reset_after", options.reset_after);
}

// What the cells have in common that depends on the type of their options. Recurrent: the layer's
// handle.
template <class Recurrent, class Options>
class CellOf : public Cell {
 public:
  // counts: gates and states.
  CellOf(const char* layer, int64_t units, int64_t gates, int64_t states, Options options)
      : Cell(internal::str(layer, "Cell"), {units, gates, states},
             {options.dropout, options.recurrent_dropout}, options.dtype),
        options_(std::move(options)) {
    constexpr int64_t kMost =
        std::numeric_limits<int32_t>::max();  // so that those of all gates fit an int64
    if (units < 1 || units > kMost) {
      throw InvalidArgumentError(
          units < 1 ? internal::str(layer, ": units is ", units, ", below 1")
                    : internal::str(layer, ": units is ", units, ", above ", kMost));
    }
    internal::check_rate(options_.dropout, layer, "dropout");
    internal::check_rate(options_.recurrent_dropout, layer, "recurrent_dropout");
  }

  void write_fields(internal::FieldWriter& field) const final {
    recurrent_fields(field, sizes().units, options_);
  }
  LayerHandle layer_again(const std::string& name, bool reversed) const final {
    Options options = options_;
    options.name = name;
    if (reversed) options.go_backwards = !options.go_backwards;
    return Recurrent(sizes().units, std::move(options));
  }

 protected:
  void make_weights(int64_t features, const Shape& bias_shape,
                    const initializers::Initializer& bias_initializer) {
    const int64_t columns = sizes().gates * sizes().units;
    kernel_ = add_weight(
        "kernel", {features, columns},
        {.initializer = options_.kernel_initializer, .regularizer = options_.kernel_regularizer});
    recurrent_ = add_weight("recurrent_kernel", {sizes().units, columns},
                            {.initializer = options_.recurrent_initializer,
                             .regularizer = options_.recurrent_regularizer});
    if (!options_.use_bias) return;
    bias_ = add_weight("bias", bias_shape,
                       {.initializer = bias_initializer, .regularizer = options_.bias_regularizer});
  }

  const Options options_;
};

// The layer around a cell: it takes a tuple apart and puts one together.
class RecurrentLayer : public Layer, public internal::DescribesOperation {
 public:
  struct Options {
    bool return_sequences;
    bool return_state;
    bool go_backwards;
    bool stateful;
  };
  RecurrentLayer(const char* class_name, LayerOptions layer_options, std::shared_ptr<Cell> cell,
                 const Options& options);

  std::optional<Config> get_config() const override;
  internal::LayerOperation operation(bool training) const override;
  const Cell& cell() const { return *cell_; }
  const Options& options() const { return options_; }
  // For Bidirectional; see Pass.
  void set_zeros_where_masked() { zeros_where_masked_ = true; }
  void reset_states() override { kept_.clear_all(); }

 protected:
  void build(const std::vector<Shape>& input_shapes) override;
  Structure call(const Structure& inputs, const CallOptions& call_options) override;

 private:
  bool takes(const std::vector<Shape>& shapes) const;
  // The state of the batch before, for so many rows; none where there is none.
  // Errors: InvalidArgument (it had another number of rows).
  std::vector<Tensor> kept_state(int64_t rows) const;
  void keep_state(const std::vector<Tensor>& state);

  std::shared_ptr<Cell> cell_;
  Options options_;
  bool zeros_where_masked_ = false;
  internal::ReplicaTensors kept_;  // with `stateful`: the state of the latest batch
};

template <class CellType, class Options>
std::shared_ptr<RecurrentLayer> make_recurrent(const char* class_name, int64_t units,
                                               Options options) {
  const RecurrentLayer::Options recurrent{options.return_sequences, options.return_state,
                                          options.go_backwards, options.stateful};
  LayerOptions layer{.name = options.name, .dtype = options.dtype};
  return std::make_shared<RecurrentLayer>(class_name, std::move(layer),
                                          std::make_shared<CellType>(units, std::move(options)),
                                          recurrent);
}

template <class Recurrent, class Options>
LayerHandle read_recurrent(internal::FieldReader& field) {
  int64_t units = 0;
  Options options;
  field.common(options);
  recurrent_fields(field, units, options);
  return Recurrent(units, std::move(options));
}

}  // namespace cohort::keras::layers
