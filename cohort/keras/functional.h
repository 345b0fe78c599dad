// A model as a graph of layers between symbolic inputs and outputs; Python's keras.Model(inputs,
// outputs).
//
//   auto image = keras::Input({28, 28, 1}, {.name = "image"});
//   auto size = keras::Input({1}, {.name = "size"});
//   auto merged = keras::layers::Concatenate()({keras::layers::Flatten()(image), size});
//   keras::Functional model({image, size}, keras::layers::Dense(10)(merged));
//   Structure logits = model(tuple(images, sizes));
#pragma once

#include "cohort/core/export.h"
#include "cohort/keras/sequential.h"

namespace cohort::keras {

// Inputs and outputs are tensors, of numbers or strings, tuples or dicts of them
// (SymbolicStructure::make_dict). When the model is called, a dict of inputs is matched by key, and
// what else it holds is passed over; a value alone fits a dict of one input. As in Keras, a last
// dimension of size 1 is added or taken away where that gives the rank, and one example without a
// batch dimension goes through, with a warning the first time. Layers may be shared, within the
// model and with others; an output of a layer may serve as an input.
// Thread safety: as Layer.
class COHORT_API Functional : public ModelHandle {
 public:
  // Errors: InvalidArgument (an output depends on an Input that is not among the inputs, naming it
  // and the layer; an input given twice; two layers of one name).
  Functional(const SymbolicStructure& inputs, const SymbolicStructure& outputs,
             const ModelOptions& options = {});
};

}  // namespace cohort::keras
