#include "cohort/keras/model/functional_inputs.h"

#include <algorithm>

#include "cohort/core/observe/logging.h"
#include "cohort/core/structure/tree_form.h"
#include "cohort/core/text.h"
#include "cohort/keras/base/describe_leaves.h"

namespace cohort::internal {
namespace {

bool fits(at::IntArrayRef expected, at::IntArrayRef shape) {
  return std::equal(expected.begin(), expected.end(), shape.begin(), shape.end(),
                    [](int64_t e, int64_t s) { return e == kUnknownDim || e == s; });
}

Leaf reshaped(const Leaf& leaf, std::vector<int64_t> shape) {
  if (leaf.is_tensor()) return leaf.tensor().reshape(shape);
  return leaf.strings().reshape(std::move(shape));
}

}  // namespace

std::vector<Leaf> FunctionalInputs::bind(const Structure& inputs, const std::string& model) const {
  std::vector<Leaf> leaves = leaves_of(inputs, model);
  if (leaves.size() != inputs_.leaves().size()) {
    throw InvalidArgumentError(str("model '", model, "' takes ", inputs_.leaves().size(),
                                   " inputs, but got ", leaves.size(), ": ",
                                   describe_leaves(inputs)));
  }
  for (size_t i = 0; i < leaves.size(); ++i) {
    leaves[i] = conform(inputs_.leaves()[i], std::move(leaves[i]), model);
  }
  return leaves;
}

std::vector<Leaf> FunctionalInputs::leaves_of(const Structure& inputs,
                                              const std::string& model) const {
  std::vector<Leaf> leaves;
  const auto add = [&](const Structure& member) {
    for (Leaf& leaf : member.flatten()) leaves.push_back(std::move(leaf));
  };
  if (!inputs_.spec().is_dict()) {
    const auto has = [&](const auto& input) { return inputs.contains(input.layer().name()); };
    if (!inputs.is_dict() || !std::all_of(inputs_.leaves().begin(), inputs_.leaves().end(), has)) {
      if (inputs.is_dict() && inputs_.leaves().size() > 1) throw_other_keys(inputs, model);
      return inputs.flatten();
    }
    for (const auto& input : inputs_.leaves()) add(inputs[input.layer().name()]);
    return leaves;
  }
  if (inputs.is_leaf() && inputs_.leaves().size() == 1) return {inputs.leaf()};
  for (const auto& [key, spec] : inputs_.spec().items()) {
    if (!inputs.is_dict() || !inputs.contains(key)) {
      throw InvalidArgumentError(
          str("model '", model, "' has an input ", quoted(key), ", which is missing in ", inputs));
    }
    add(inputs[key]);
  }
  return leaves;
}

// Inputs in a dict's order would be those that somebody happened to write first.
void FunctionalInputs::throw_other_keys(const Structure& inputs, const std::string& model) const {
  std::string names;
  for (const auto& input : inputs_.leaves()) {
    names += str(names.empty() ? "" : ", ", quoted(input.layer().name()));
  }
  throw InvalidArgumentError(str("model '", model, "' takes its inputs by their names, ", names,
                                 ", or in their order, but got ", describe_form(inputs),
                                 "; give a dict with these keys, or a tuple"));
}

Leaf FunctionalInputs::conform(const keras::SymbolicTensor& input, Leaf leaf,
                               const std::string& model) const {
  const std::vector<int64_t> expected = input.shape();
  std::vector<int64_t> shape = leaf.sizes();
  const auto ends_in_one = [](const auto& sizes) { return !sizes.empty() && sizes.back() == 1; };
  if (shape.size() == expected.size() + 1 && ends_in_one(shape)) {
    shape.pop_back();
    leaf = reshaped(leaf, shape);
  } else if (shape.size() + 1 == expected.size() && ends_in_one(expected)) {
    shape.push_back(1);
    leaf = reshaped(leaf, shape);
  }
  if (input.spec().is_string() == leaf.is_strings()) {
    if (fits(expected, shape)) return leaf;
    if (fits(at::IntArrayRef(expected).slice(1), shape)) {
      if (!warned_.exchange(true)) {
        log_warning("model '", model, "': the input '", input.layer().name(), "' is of ",
                    input.spec(), ", but got one example of shape ", shape_str(shape),
                    " without a batch dimension");
      }
      return leaf;
    }
  }
  throw InvalidArgumentError(str("model '", model, "': the input '", input.layer().name(),
                                 "' is of ", input.spec(), ", but got ",
                                 describe_leaves(Structure(leaf))));
}

}  // namespace cohort::internal
