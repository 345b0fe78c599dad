#include "cohort/keras/torch_module.h"

#include <cstdint>

#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

// How often each tensor was written to.
std::vector<uint64_t> versions_of(const Structure& tensors) {
  std::vector<uint64_t> versions;
  tensors.for_each([&](const Leaf& leaf) {
    const bool counts = leaf.is_tensor() && !leaf.tensor().is_inference();
    versions.push_back(counts ? static_cast<uint64_t>(leaf.tensor()._version()) : 0);
  });
  return versions;
}

Structure copy_of(const Structure& tensors) {
  return tensors.map(
      [](const Leaf& leaf) -> Leaf { return leaf.is_tensor() ? leaf.tensor().clone() : leaf; });
}

}  // namespace

Structure TorchModule::call(const Structure& inputs, bool training) {
  set_training(training);
  Writes& writes = writes_[training ? 1 : 0];
  const bool copies = writes != Writes::kNo;
  const Structure own = copies ? copy_of(inputs) : inputs;
  const std::vector<uint64_t> before = versions_of(own);
  const Structure outputs = forward(own);
  if (versions_of(own) != before) {
    if (!copies) {
      throw InvalidArgumentError(
          "a module's forward has written into its input, which it left alone in its first call, "
          "so that it got the program's own tensor; let it write into a copy (x = x.clone())");
    }
    writes = Writes::kYes;
  } else if (writes == Writes::kUnknown) {
    writes = Writes::kNo;
  }
  return outputs;
}

}  // namespace cohort::internal
