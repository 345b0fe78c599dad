// A recurrent layer of any cell.
//
//   layers::RNN(layers::LSTMCell(64), {.return_sequences = true});
//   layers::RNN({layers::GRUCell(64), layers::GRUCell(32)});       // one above the other
//   layers::RNN own(cell, {.return_state = true});                 // see AbstractRNNCell
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/keras/layers/base/symbolic.h"

namespace cohort::keras::layers {

struct RNNOptions {
  bool return_sequences = false;  // the outputs of all steps rather than of the last
  bool return_state = false;      // a tuple: the output, then the states
  bool go_backwards = false;      // from the last step to the first
  bool stateful = false;          // a batch goes on where the one before has stopped, row by row
  bool unroll = false;            // Keras's; changes nothing here
  bool time_major = false;        // sequences are [steps, batch, ..], in and out
  // The output of a step that is masked: zeros rather than that of the step before.
  bool zero_output_for_mask = false;
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};

// Steps that are masked, and `stateful`: see recurrent.h.
// Shapes: [batch, steps, ..], floating, or a tuple of it and the initial states [batch, ..] ->
// the cell's output [batch, ..], or [batch, steps, ..] with return_sequences; with return_state a
// tuple of that and the states, those of stacked cells one after the other. Weights: those of the
// child "cell".
// An LSTMCell, GRUCell or SimpleRNNCell with the usual activations is as fast as the layer of its
// own; other cells are called once a step.
class COHORT_API RNN : public LayerHandle {
 public:
  // Errors: InvalidArgument (a layer that is no cell).
  explicit RNN(const LayerHandle& cell, RNNOptions options = {});
  // An RNN of StackedRNNCells.
  explicit RNN(const std::vector<LayerHandle>& cells, RNNOptions options = {});
};

}  // namespace cohort::keras::layers
