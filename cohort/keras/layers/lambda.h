// A layer of a function without weights.
//
//   auto user = keras::Input({8}), item = keras::Input({8});
//   auto score = layers::Lambda([](const Tensor& a, const Tensor& b) {
//     return tf::reduce_sum(a * b, {.axis = -1, .keepdims = true});
//   })({user, item});
//   keras::Sequential model({layers::Lambda([](const Tensor& x) { return tf::log(x + 1); }),
//                            layers::Dense(1)});
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "cohort/core/export.h"
#include "cohort/core/structure/structure_call.h"
#include "cohort/keras/layers/base/layer_handle.h"

namespace cohort::keras::layers {

struct LambdaOptions {
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};

// The function takes one tensor, the members of a tuple one by one, or the whole Structure, and
// returns a tensor, a pair or tuple of them, or a Structure. It is called by all replicas at once,
// and, where a Functional model is described, on zeros, for the shape of its result. Functions with
// weights are classes of their own (layer.h). Models with a Lambda cannot be saved as a whole, only
// their weights.
class COHORT_API Lambda : public LayerHandle {
 public:
  template <class Fn>
  explicit Lambda(Fn function, LambdaOptions options = {})
      : Lambda(internal::structure_function(
                   std::move(function),
                   internal::CallSite{.function = "the function of a Lambda layer",
                                      .argument = "tensor",
                                      .input = "the layer's input"}),
               std::move(options)) {}

 private:
  Lambda(internal::StructureFunction<> function, LambdaOptions options);
};

}  // namespace cohort::keras::layers
