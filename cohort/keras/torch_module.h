// Modules of libtorch without their types. Nothing of torch/nn is included: templates only call
// members of the given type.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cohort/core/structure/structure_call.h"
#include "cohort/core/structure/tensor.h"

namespace cohort::internal {

// One module, without its type. Thread safety: one thread at a time.
struct TorchModule {
  using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

  // Runs forward in this mode. A module that writes into its input, which may be the program's own
  // data, gets a copy: the first call finds out whether it does.
  // Errors: also InvalidArgument (it writes where it did not in that call).
  Structure call(const Structure& inputs, bool training);

  NamedTensors parameters;
  NamedTensors buffers;
  std::function<Structure(const Structure& inputs)> forward;
  std::function<void(bool training)> set_training;

 private:
  enum class Writes { kUnknown, kNo, kYes };
  std::array<Writes, 2> writes_{};  // into its input; in evaluation, in training
};

inline constexpr CallSite kForwardSite{
    .function = "the module's forward", .argument = "tensor", .input = "the model's input"};

// A module, or what holds one.
template <class T>
concept TorchModuleItself = requires(T& module) {
  module.named_parameters();
}
|| requires(T& holder) { holder->named_parameters(); };

// Calls forward with one tensor, with the members of a tuple, or with the Structure itself,
// whichever it takes.
template <class Module>
Structure forward_module(Module& module, const Structure& inputs) {
  const auto forward = [&](auto&&... arguments) {
    return to_structure<ScalarDtype::kDefault>(
        module.forward(std::forward<decltype(arguments)>(arguments)...));
  };
  if constexpr (requires { typename CallableTraits<decltype(&Module::forward)>::Arguments; }) {
    using Arguments = typename CallableTraits<decltype(&Module::forward)>::Arguments;
    return call_with_form<ParameterForm<Arguments>>(forward, kForwardSite, kNoContext, inputs);
  } else {  // a template or an overload set, such as torch::nn::Sequential's
    return call_with_form<ParameterForm<std::tuple<Tensor>>>(forward, kForwardSite, kNoContext,
                                                             inputs);
  }
}

template <class NamedList>
TorchModule::NamedTensors named_tensors(const NamedList& list) {
  TorchModule::NamedTensors all;
  for (const auto& item : list) all.emplace_back(item.key(), item.value());
  return all;
}

template <class Holder>
TorchModule erase_torch_module(Holder holder) {
  TorchModule erased;
  erased.parameters = named_tensors(holder->named_parameters());
  erased.buffers = named_tensors(holder->named_buffers());
  erased.forward = [holder](const Structure& inputs) mutable {
    return forward_module(*holder, inputs);
  };
  erased.set_training = [holder](bool training) mutable { holder->train(training); };
  return erased;
}

}  // namespace cohort::internal
