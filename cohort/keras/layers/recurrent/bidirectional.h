// A recurrent layer in both directions.
//
//   layers::Bidirectional(layers::LSTM(64, {.return_sequences = true}));
#pragma once

#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/layers/base/symbolic.h"

namespace cohort::keras::layers {

struct BidirectionalOptions {
  // How the outputs of the two directions become one: "concat" (of the last dimension), "sum",
  // "mul", "ave"; missing: they do not, and are a tuple.
  std::optional<std::string> merge_mode = "concat";
  // Gives the options of the second layer, perhaps of another class; it goes the other way than the
  // first, and returns as much.
  std::optional<LayerHandle> backward_layer = std::nullopt;
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};

// Two layers like `layer` (or like it and backward_layer), "forward_NAME" and "backward_NAME", the
// second of which goes the other way. With return_sequences its outputs are turned around again.
// Shapes: as those of `layer`; a tuple of inputs has the initial states of the first, then those of
// the second. With return_state a tuple: the output (or both), the states of the first, those of
// the second. Weights: those of the children "forward_layer" and "backward_layer".
class COHORT_API Bidirectional : public LayerHandle {
 public:
  // layer: gives its options; neither it nor its weights are used.
  // Errors: InvalidArgument (not an RNN, LSTM, GRU or SimpleRNN; a cell of one's own without clone;
  // merge_mode; a backward_layer that goes the same way, or whose return_sequences, return_state,
  // stateful or time_major differ).
  explicit Bidirectional(const LayerHandle& layer, BidirectionalOptions options = {});
};

}  // namespace cohort::keras::layers
