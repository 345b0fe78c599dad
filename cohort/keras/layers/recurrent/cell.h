// The cells of recurrent layers: weights under the names that Keras's cells have, and the formula
// of a step. For sources only.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/keras/layers/base/kept_elements.h"
#include "cohort/keras/layers/base/layer_config.h"
#include "cohort/keras/layers/base/operation.h"
#include "cohort/keras/layers/recurrent/abstract_rnn_cell.h"
#include "cohort/keras/layers/recurrent/recurrent.h"
#include "cohort/keras/layers/recurrent/rnn_cells.h"

namespace cohort::keras::layers {

// A way over sequences.
struct Pass {
  Tensor sequences;           // [batch, steps, features], in the order in which the steps are taken
  std::vector<Tensor> state;  // [batch, units] each, or of the shapes that the cell has
  Tensor mask;                // [batch, steps] in that order, bool; undefined: all steps count
  // The output of a step that does not count: zeros, or that of the step before.
  bool zeros_where_masked = false;
  bool training = false;
};

// What it comes to.
struct Run {
  Tensor outputs;  // [batch, steps, units], or of the shape of the cell's outputs
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

// A cell that goes over a whole sequence by itself.
class RunsSequences {
 public:
  virtual ~RunsSequences() = default;
  // It is built.
  virtual Run run(const Pass& pass) const = 0;
};

// Goes over the sequence with any cell, which is built.
Run run_cell(AbstractRNNCell& cell, const Pass& pass);

// Builds the cell for steps of this shape, with the batch, where it is not built yet.
void build_cell(AbstractRNNCell& cell, const Shape& inputs);

class Cell : public AbstractRNNCell, public RunsSequences {
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
  Cell(std::string class_name, LayerOptions options, const Sizes& sizes, const Dropouts& dropouts)
      : AbstractRNNCell(std::move(class_name), std::move(options)),
        sizes_(sizes),
        dropouts_(dropouts) {}

  Run run(const Pass& pass) const override;
  std::vector<Shape> state_size() const override {
    return std::vector<Shape>(static_cast<size_t>(sizes_.states), Shape{sizes_.units});
  }
  const Sizes& sizes() const { return sizes_; }
  // For which it was built.
  int64_t features() const { return kernel_.shape()[0]; }
  // What plans know of it: the way over sequences without a mask, from a state of zeros.
  internal::LayerOperation operation(bool sequences, bool backwards) const;

 protected:
  // For plans, but for the way over a sequence; nothing where they do not know the cell's formula.
  virtual std::optional<internal::plan::Recurrent> planned() const { return std::nullopt; }
  // x: [batch, gates * units], the part of the inputs. Returns the new state, whose first part is
  // the output.
  virtual std::vector<Tensor> advance(const Tensor& x, const std::vector<Tensor>& state,
                                      const Recurrence& recurrence) const = 0;
  // Runs a kernel of libtorch; nullopt where there is none for the cell's options.
  virtual std::optional<Run> run_fused(const Tensor& sequences,
                                       const std::vector<Tensor>& state) const = 0;
  // What is added to the inputs' part. May be undefined.
  virtual Tensor input_bias() const { return bias(); }

  Step step(const Tensor& inputs, const std::vector<Tensor>& states,
            const CallOptions& options) override;

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

// The options of cells, each stated once: calls visit(name, options.name, others.name...) for each
// that `options` has.
template <class Visit, class Options, class... Others>
void cell_options(Visit&& visit, Options& options, Others&... others) {
  visit("activation", options.activation, others.activation...);
  if constexpr (requires { options.recurrent_activation; }) {
    visit("recurrent_activation", options.recurrent_activation, others.recurrent_activation...);
  }
  visit("use_bias", options.use_bias, others.use_bias...);
  visit("kernel_initializer", options.kernel_initializer, others.kernel_initializer...);
  visit("recurrent_initializer", options.recurrent_initializer, others.recurrent_initializer...);
  visit("bias_initializer", options.bias_initializer, others.bias_initializer...);
  visit("kernel_regularizer", options.kernel_regularizer, others.kernel_regularizer...);
  visit("recurrent_regularizer", options.recurrent_regularizer, others.recurrent_regularizer...);
  visit("bias_regularizer", options.bias_regularizer, others.bias_regularizer...);
  visit("kernel_constraint", options.kernel_constraint, others.kernel_constraint...);
  visit("recurrent_constraint", options.recurrent_constraint, others.recurrent_constraint...);
  visit("bias_constraint", options.bias_constraint, others.bias_constraint...);
  visit("dropout", options.dropout, others.dropout...);
  visit("recurrent_dropout", options.recurrent_dropout, others.recurrent_dropout...);
  if constexpr (requires { options.unit_forget_bias; }) {
    visit("unit_forget_bias", options.unit_forget_bias, others.unit_forget_bias...);
  }
  if constexpr (requires { options.reset_after; }) {
    visit("reset_after", options.reset_after, others.reset_after...);
  }
}

template <class Fields, class Units, class Options>
void cell_fields(Fields& field, Units& units, Options& options) {
  field("units", units);
  cell_options(field, options);
  if constexpr (requires { options.recurrent_activation; })
    field.without_effect("implementation", 2);
}

// For whom a cell is made: "LSTM", of whose cells nobody gives the name, or "LSTMCell".
struct CellUse {
  const char* maker;
  std::string name = "";
};

// What the cells have in common that depends on the type of their options, those of the layer of
// the cell's own. Derived: the cell.
template <class Derived, class Options>
class CellOf : public Cell {
 public:
  // counts: gates and states.
  CellOf(const char* class_name, int64_t units, int64_t gates, int64_t states, Options options,
         const CellUse& use)
      : Cell(class_name, {.name = use.name, .dtype = options.dtype}, {units, gates, states},
             {options.dropout, options.recurrent_dropout}),
        options_(std::move(options)) {
    constexpr int64_t kMost =
        std::numeric_limits<int32_t>::max();  // so that those of all gates fit an int64
    if (units < 1 || units > kMost) {
      throw InvalidArgumentError(
          units < 1 ? internal::str(use.maker, ": units is ", units, ", below 1")
                    : internal::str(use.maker, ": units is ", units, ", above ", kMost));
    }
    internal::check_rate(options_.dropout, use.maker, "dropout");
    internal::check_rate(options_.recurrent_dropout, use.maker, "recurrent_dropout");
  }

  std::optional<Config> get_config() const final {
    return internal::layer_config(*this, [this](internal::FieldWriter& field) {
      cell_fields(field, sizes().units, options_);
    });
  }
  std::shared_ptr<AbstractRNNCell> clone() const final {
    return std::make_shared<Derived>(sizes().units, options_,
                                     CellUse{.maker = class_name().c_str(), .name = name()});
  }

 protected:
  void make_weights(int64_t features, const Shape& bias_shape,
                    const initializers::Initializer& bias_initializer) {
    const int64_t columns = sizes().gates * sizes().units;
    kernel_ = add_weight("kernel", {features, columns},
                         {.initializer = options_.kernel_initializer,
                          .regularizer = options_.kernel_regularizer,
                          .constraint = options_.kernel_constraint});
    recurrent_ = add_weight("recurrent_kernel", {sizes().units, columns},
                            {.initializer = options_.recurrent_initializer,
                             .regularizer = options_.recurrent_regularizer,
                             .constraint = options_.recurrent_constraint});
    if (!options_.use_bias) return;
    bias_ = add_weight("bias", bias_shape,
                       {.initializer = bias_initializer,
                        .regularizer = options_.bias_regularizer,
                        .constraint = options_.bias_constraint});
  }

  const Options options_;
};

// The options of a layer with those of its cell.
template <class LayerOptionsOf, class CellOptions>
LayerOptionsOf with_cell_options(const CellOptions& cell) {
  LayerOptionsOf options;
  cell_options([](const char*, auto& to, const auto& from) { to = from; }, options, cell);
  options.dtype = cell.dtype;
  return options;
}

template <class CellHandle, class Options>
LayerHandle read_cell(internal::FieldReader& field) {
  int64_t units = 0;
  Options options;
  field.common(options);
  cell_fields(field, units, options);
  return CellHandle(units, std::move(options));
}

}  // namespace cohort::keras::layers
