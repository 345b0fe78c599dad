#include "cohort/distribute/input_source.h"

#include <algorithm>

namespace cohort::distribute::internal_input {

size_t Source::num_replicas() const {
  size_t count = 0;
  for (size_t worker = 0; worker < pipelines.size(); ++worker) count += num_replicas(worker);
  return count;
}

namespace {

bool is_infinite(const Source& source) {
  return std::all_of(
      source.pipelines.begin(), source.pipelines.end(),
      [](const auto& one) { return one.cardinality() == data::kInfiniteCardinality; });
}

}  // namespace

StructureSpec Source::component_spec() const {
  const StructureSpec spec = pipelines.front().element_spec();
  if (numbering.total == 1 || is_infinite(*this)) return spec;
  return spec.map([](const TensorSpec& leaf) {
    return leaf.shape() && !leaf.shape()->empty() ? leaf.with_batch_dim(kUnknownDim) : leaf;
  });
}

bool Source::fills_up_last_step() const {
  if (is_infinite(*this)) return false;
  if (numbering.total > 1) return true;
  const std::vector<TensorSpec> leaves = pipelines.front().element_spec().flatten();
  return !std::all_of(leaves.begin(), leaves.end(),
                      [](const TensorSpec& leaf) { return leaf.is_fully_defined(); });
}

}  // namespace cohort::distribute::internal_input
