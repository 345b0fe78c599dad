// Converts the arguments of a functional model's call to the form that the model was described
// with.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "cohort/keras/layers/base/symbolic.h"

namespace cohort::internal {

// Thread safety: any thread.
class FunctionalInputs {
 public:
  explicit FunctionalInputs(keras::SymbolicStructure inputs) : inputs_(std::move(inputs)) {}

  const keras::SymbolicStructure& form() const { return inputs_; }

  // Returns one leaf per input of the model, in order. Dicts are matched by key (for a model with a
  // tuple of inputs, by the names of the inputs, and never by place); a single leaf fits a dict of
  // one. As in Keras, a last dimension of size 1 is added or removed if that gives the right rank,
  // and one example without a batch dimension is accepted, with a warning the first time.
  // Errors: InvalidArgument (number, keys, kind or shapes; `model` is its name).
  std::vector<Leaf> bind(const Structure& inputs, const std::string& model) const;

 private:
  std::vector<Leaf> leaves_of(const Structure& inputs, const std::string& model) const;
  [[noreturn]] void throw_other_keys(const Structure& inputs, const std::string& model) const;
  Leaf conform(const keras::SymbolicTensor& input, Leaf leaf, const std::string& model) const;

  keras::SymbolicStructure inputs_;
  mutable std::atomic<bool> warned_ = false;
};

}  // namespace cohort::internal
