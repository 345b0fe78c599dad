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
#include "cohort/keras/model/sequential.h"

namespace cohort::keras {

// Inputs and outputs are tensors of numbers or strings, or tuples or dicts of them
// (SymbolicStructure::make_dict). When the model is called, a dict of inputs is matched by key, and
// its other entries are ignored; a single value fits a dict of one input. As in Keras, a last
// dimension of size 1 is added or removed if that gives the right rank, and one example without a
// batch dimension is accepted, with a warning the first time. Layers may be shared, within the
// model and with others; a layer's output may be used as an input.
// Thread safety: as Layer.
class COHORT_API Functional : public ModelHandle {
 public:
  // Errors: InvalidArgument (an output depends on an Input that is not among the inputs, naming it
  // and the layer; an input given twice; two layers or inputs of one name).
  Functional(const SymbolicStructure& inputs, const SymbolicStructure& outputs,
             const ModelOptions& options = {});
};

}  // namespace cohort::keras
