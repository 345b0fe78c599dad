// A model that applies its layers one after another.
//
//   keras::Sequential model({
//       keras::layers::Conv2D(32, 3, {.activation = "relu"}), keras::layers::MaxPooling2D(),
//       keras::layers::Flatten(), keras::layers::Dense(10)});
//   Tensor logits = model(images, {.training = true});
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/keras/layers/base/symbolic.h"
#include "cohort/keras/model/model.h"

namespace cohort::keras {

struct ModelOptions {
  std::string name = "";
};

// A handle; default-constructed it names a new model without layers, which returns its input. If an
// Input (or InputLayer) comes first, the model is built while layers are added, else by the first
// call.
// Thread safety: as Layer; add and pop while no step runs.
class COHORT_API Sequential : public ModelHandle {
 public:
  Sequential();
  // Errors: InvalidArgument (as add).
  Sequential(std::initializer_list<layers::LayerHandle> layers, const ModelOptions& options = {});
  explicit Sequential(const std::vector<layers::LayerHandle>& layers,
                      const ModelOptions& options = {});

  // Errors: InvalidArgument (another layer of that name; an Input that is not first; with an Input,
  // shapes that do not fit).
  void add(const layers::LayerHandle& layer) const;
  // Removes the last layer. Errors: FailedPrecondition (there is none).
  void pop() const;
};

}  // namespace cohort::keras
