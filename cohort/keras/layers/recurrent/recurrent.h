// Recurrent layers: they go over the steps of a sequence and carry a state from one to the next.
//
//   layers::LSTM(64, {.return_sequences = true});
//   layers::LSTM encoder(64, {.return_state = true});
//   Structure output_h_c = encoder(Structure(x));
//
// Steps that an Embedding with mask_zero or a Masking layer marks, or the mask of the call, are
// passed over: the state stays as it is, and so does the output.
//
// A stateful layer's rows go on with the sequences of the batch before, in training and outside of
// it, until reset_states() of the layer or model; gradients end at the beginning of a batch. Each
// replica keeps the state of its own rows: batches must have as many rows, in the same order. It is
// neither a weight nor part of checkpoints. Under parameter servers a worker takes
// whatever batch comes next, so that there sequences must not be longer than a batch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/base/activations.h"
#include "cohort/keras/layers/base/symbolic.h"

namespace cohort::keras::layers {

struct SimpleRNNOptions {
  activations::Activation activation = "tanh";
  bool use_bias = true;
  bool return_sequences = false;  // the outputs of all steps rather than of the last
  bool return_state = false;      // a tuple: the output, then the state
  bool go_backwards = false;      // from the last step to the first
  bool stateful = false;          // a batch goes on where the one before has stopped, row by row
  initializers::Initializer kernel_initializer = "glorot_uniform";
  initializers::Initializer recurrent_initializer = "orthogonal";
  initializers::Initializer bias_initializer = "zeros";
  regularizers::Regularizer kernel_regularizer = {};
  regularizers::Regularizer recurrent_regularizer = {};
  regularizers::Regularizer bias_regularizer = {};
  constraints::Constraint kernel_constraint = {};
  constraints::Constraint recurrent_constraint = {};
  constraints::Constraint bias_constraint = {};
  // In training these shares of the inputs, and of the state before its product with the recurrent
  // kernel, are 0 and the rest is scaled up; the same elements at all steps of an example (Gal and
  // Ghahramani, 2016), other ones for each gate of the state. In [0, 1].
  double dropout = 0;
  double recurrent_dropout = 0;
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};

// activation(x . kernel + h . recurrent_kernel + bias), which is both the output and the state h.
// Shapes: [batch, steps, features], floating, or a tuple of it and the initial h [batch, units] ->
// [batch, units], or [batch, steps, units] with return_sequences; with return_state a tuple of that
// and h.
// Weights, of a child "cell": "kernel" [features, units], "recurrent_kernel" [units, units], "bias"
// [units].
class COHORT_API SimpleRNN : public LayerHandle {
 public:
  // Errors (of the others, too): InvalidArgument (units below 1; a dropout outside [0, 1]).
  explicit SimpleRNN(int64_t units, SimpleRNNOptions options = {});
};

struct LSTMOptions {
  activations::Activation activation = "tanh";
  activations::Activation recurrent_activation = "sigmoid";
  bool use_bias = true;
  bool unit_forget_bias = true;   // the forget gate's part of the bias starts at 1
  bool return_sequences = false;  // the outputs of all steps rather than of the last
  bool return_state = false;      // a tuple: the output, then the state
  bool go_backwards = false;      // from the last step to the first
  bool stateful = false;          // a batch goes on where the one before has stopped, row by row
  initializers::Initializer kernel_initializer = "glorot_uniform";
  initializers::Initializer recurrent_initializer = "orthogonal";
  initializers::Initializer bias_initializer = "zeros";
  regularizers::Regularizer kernel_regularizer = {};
  regularizers::Regularizer recurrent_regularizer = {};
  regularizers::Regularizer bias_regularizer = {};
  constraints::Constraint kernel_constraint = {};
  constraints::Constraint recurrent_constraint = {};
  constraints::Constraint bias_constraint = {};
  double dropout = 0;            // of the inputs
  double recurrent_dropout = 0;  // of the state; see SimpleRNNOptions
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};

// Hochreiter and Schmidhuber's (1997). The state is h and c.
// Shapes: [batch, steps, features], floating, or a tuple of it and the initial h and c, each
// [batch, units] -> [batch, units], or [batch, steps, units] with return_sequences; with
// return_state a tuple of that, h and c. Weights, of a child "cell": "kernel" [features, 4 *
// units], "recurrent_kernel" [units, 4 * units], "bias" [4 * units]; their quarters are the gates
// for input, forgetting, cell and output.
class COHORT_API LSTM : public LayerHandle {
 public:
  explicit LSTM(int64_t units, LSTMOptions options = {});
};

struct GRUOptions {
  activations::Activation activation = "tanh";
  activations::Activation recurrent_activation = "sigmoid";
  bool use_bias = true;
  bool reset_after = true;  // the reset gate acts after the matrix product rather than before it
  bool return_sequences = false;
  bool return_state = false;
  bool go_backwards = false;
  bool stateful = false;
  initializers::Initializer kernel_initializer = "glorot_uniform";
  initializers::Initializer recurrent_initializer = "orthogonal";
  initializers::Initializer bias_initializer = "zeros";
  regularizers::Regularizer kernel_regularizer = {};
  regularizers::Regularizer recurrent_regularizer = {};
  regularizers::Regularizer bias_regularizer = {};
  constraints::Constraint kernel_constraint = {};
  constraints::Constraint recurrent_constraint = {};
  constraints::Constraint bias_constraint = {};
  double dropout = 0;            // of the inputs
  double recurrent_dropout = 0;  // of the state; see SimpleRNNOptions
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};

// Cho et al.'s (2014). The state is h. Shapes: as LSTM, without c. Weights, of a child "cell":
// "kernel" [features, 3 * units], "recurrent_kernel" [units, 3 * units], "bias" [3 * units], or [2,
// 3 * units] with reset_after; their thirds are the gates for update and reset, and the candidate.
class COHORT_API GRU : public LayerHandle {
 public:
  explicit GRU(int64_t units, GRUOptions options = {});
};

}  // namespace cohort::keras::layers
