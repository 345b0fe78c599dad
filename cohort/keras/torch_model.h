// Makes a model of any torch::nn::Module: it is mirrored by the names of its parameters and
// buffers, and trained by the same loop as a Keras model.
//
//   struct NetImpl : torch::nn::Module {
//     NetImpl() : linear(register_module("linear", torch::nn::Linear(4, 2))) {}
//     torch::Tensor forward(const torch::Tensor& x) { return linear(x); }
//     torch::nn::Linear linear;
//   };
//   TORCH_MODULE(Net);
//   auto scope = strategy.scope();
//   keras::TorchModel model([] { return Net(); });
//   // in a step: model(x, {.training = true}), model.trainable_variables(), ...
//
// This header includes nothing of torch/nn: it only calls members of the given type.
#pragma once

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "cohort/core/export.h"
#include "cohort/keras/model/sequential.h"
#include "cohort/keras/torch_module.h"

namespace cohort::keras {

// A handle. Makes one module per local replica of the current strategy; each replica runs its own.
// A model belongs to the task that made it: in an in-process cluster each task makes its own.
// Parameters become trainable variables (not trainable if requires_grad is off). Floating buffers
// become ON_READ variables that are averaged when read; other buffers become ON_READ variables that
// read as the first replica's. A tensor with several names in the module is one variable, which
// checkpoints know by all of these names. The module's own tensors are the variables' components:
// do not replace them (as set_data and to() do), but write into them. Where ps tasks keep the
// variables, each worker's replicas have modules of their own, which `factory` makes when a worker
// first calls the model; the ps tasks' values replace theirs, whole, before each call. What a call
// with training changes in a buffer is added to the variable after the step, as what other workers
// change is.
// Thread safety: as Layer.
class COHORT_API TorchModel : public ModelHandle {
 public:
  // `factory` returns a module holder (TORCH_MODULE) or a shared_ptr to a module. It is called once
  // for each replica; all replicas start from the first module's values.
  // Errors: FailedPrecondition (in a step), InvalidArgument (factory results that differ in names,
  // shapes or dtypes, naming the first difference; one module for several replicas), what factory
  // throws.
  template <class Factory>
  requires(!internal::TorchModuleItself<Factory>) &&
      std::is_invocable_v<Factory&> explicit TorchModel(Factory factory,
                                                        const ModelOptions& options = {})
      : TorchModel([factory = std::make_shared<Factory>(
                        std::move(factory))] { return internal::erase_torch_module((*factory)()); },
                   options, Erased()) {}
  // Does not compile, and says what to give instead.
  template <internal::TorchModuleItself Module>
  explicit TorchModel(const Module&, const ModelOptions& options = {})
      : TorchModel([]() -> internal::TorchModule { return {}; }, options, Erased()) {
    static_assert(!internal::TorchModuleItself<Module>,
                  "TorchModel takes a function that makes a module, since each replica has its "
                  "own: TorchModel model([] { return Net(); });");
  }

  // Writes the present values of all parameters and buffers into a module of the same class, which
  // libtorch can then use and save: torch::save(net, path). Buffers, of which each replica has its
  // own, as they are read between steps. Outside of steps; of several tasks COLLECTIVE.
  // Errors: InvalidArgument (a name that the model has not, or of another shape).
  template <internal::TorchModuleItself Module>
  void copy_to(Module& module) const {
    if constexpr (requires { module->named_parameters(); }) {
      write_to(internal::named_tensors(module->named_parameters()),
               internal::named_tensors(module->named_buffers()));
    } else {
      write_to(internal::named_tensors(module.named_parameters()),
               internal::named_tensors(module.named_buffers()));
    }
  }

 private:
  struct Erased {};
  void write_to(const internal::TorchModule::NamedTensors& parameters,
                const internal::TorchModule::NamedTensors& buffers) const;
  TorchModel(std::function<internal::TorchModule()> factory, const ModelOptions& options, Erased);
};

}  // namespace cohort::keras
