// The cells of SimpleRNN, LSTM and GRU by themselves, and several cells as one.
//
//   layers::RNN(layers::LSTMCell(64), {.return_sequences = true});    // what LSTM(64, ..) computes
//   layers::RNN({layers::LSTMCell(64), layers::GRUCell(32)});         // StackedRNNCells of them
//   Structure output_h_c = layers::LSTMCell(64)(tuple(x, h, c));      // one step
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/keras/base/activations.h"
#include "cohort/keras/layers/base/symbolic.h"

namespace cohort::keras::layers {

struct SimpleRNNCellOptions {
  activations::Activation activation = "tanh";
  bool use_bias = true;
  initializers::Initializer kernel_initializer = "glorot_uniform";
  initializers::Initializer recurrent_initializer = "orthogonal";
  initializers::Initializer bias_initializer = "zeros";
  regularizers::Regularizer kernel_regularizer = {};
  regularizers::Regularizer recurrent_regularizer = {};
  regularizers::Regularizer bias_regularizer = {};
  constraints::Constraint kernel_constraint = {};
  constraints::Constraint recurrent_constraint = {};
  constraints::Constraint bias_constraint = {};
  // Dropout of the inputs and of the state, as SimpleRNN's: in an RNN the same elements at all
  // steps of an example.
  double dropout = 0;
  double recurrent_dropout = 0;
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};

// See SimpleRNN. Shapes: a tuple of x [batch, features] and h [batch, units] -> a tuple of the
// output and h, which are the same. Weights: "kernel", "recurrent_kernel", "bias".
class COHORT_API SimpleRNNCell : public LayerHandle {
 public:
  // Errors (of the others, too): InvalidArgument (units below 1; a dropout outside [0, 1]).
  explicit SimpleRNNCell(int64_t units, SimpleRNNCellOptions options = {});
};

struct LSTMCellOptions {
  activations::Activation activation = "tanh";
  activations::Activation recurrent_activation = "sigmoid";
  bool use_bias = true;
  bool unit_forget_bias = true;  // the forget gate's part of the bias starts at 1
  initializers::Initializer kernel_initializer = "glorot_uniform";
  initializers::Initializer recurrent_initializer = "orthogonal";
  initializers::Initializer bias_initializer = "zeros";
  regularizers::Regularizer kernel_regularizer = {};
  regularizers::Regularizer recurrent_regularizer = {};
  regularizers::Regularizer bias_regularizer = {};
  constraints::Constraint kernel_constraint = {};
  constraints::Constraint recurrent_constraint = {};
  constraints::Constraint bias_constraint = {};
  double dropout = 0;
  double recurrent_dropout = 0;
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};

// See LSTM. Shapes: a tuple of x [batch, features], h and c [batch, units] -> a tuple of the
// output, which is h, and h and c. Weights: as LSTM's.
class COHORT_API LSTMCell : public LayerHandle {
 public:
  explicit LSTMCell(int64_t units, LSTMCellOptions options = {});
};

struct GRUCellOptions {
  activations::Activation activation = "tanh";
  activations::Activation recurrent_activation = "sigmoid";
  bool use_bias = true;
  bool reset_after = true;  // the reset gate acts after the matrix product rather than before it
  initializers::Initializer kernel_initializer = "glorot_uniform";
  initializers::Initializer recurrent_initializer = "orthogonal";
  initializers::Initializer bias_initializer = "zeros";
  regularizers::Regularizer kernel_regularizer = {};
  regularizers::Regularizer recurrent_regularizer = {};
  regularizers::Regularizer bias_regularizer = {};
  constraints::Constraint kernel_constraint = {};
  constraints::Constraint recurrent_constraint = {};
  constraints::Constraint bias_constraint = {};
  double dropout = 0;
  double recurrent_dropout = 0;
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};

// See GRU. Shapes: as SimpleRNNCell's. Weights: as GRU's.
class COHORT_API GRUCell : public LayerHandle {
 public:
  explicit GRUCell(int64_t units, GRUCellOptions options = {});
};

struct StackedRNNCellsOptions {
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};

// Cells one above the other, each of which reads the output of the one below it. Its states are
// theirs, the lowest one's first. In an RNN each cell goes over the whole sequence before the next
// one does. Weights: those of the children "cells/0", "cells/1" and so on.
class COHORT_API StackedRNNCells : public LayerHandle {
 public:
  // Errors: InvalidArgument (none, or a layer that is no cell).
  explicit StackedRNNCells(const std::vector<LayerHandle>& cells,
                           StackedRNNCellsOptions options = {});
};

}  // namespace cohort::keras::layers
