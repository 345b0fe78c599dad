#include "cohort/keras/base/describe_leaves.h"

#include "cohort/core/text.h"

namespace cohort::internal {

std::string describe_leaves(const Structure& inputs) {
  std::string text;
  inputs.for_each([&](const Leaf& leaf) {
    if (!text.empty()) text += ", ";
    text += leaf.is_tensor() ? describe(leaf.tensor()) : str("string ", shape_str(leaf.sizes()));
  });
  return text.empty() ? "no tensors" : text;
}

}  // namespace cohort::internal
