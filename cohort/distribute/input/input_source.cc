#include "cohort/distribute/input/input_source.h"

#include <algorithm>

#include "cohort/data/graph/node.h"
#include "cohort/data/nodes/prefetch.h"

namespace cohort::distribute::internal_input {

size_t Source::num_replicas(size_t pipeline) const {
  if (feed == Feed::kOwnPipeline) return 1;
  if (feed == Feed::kPieces) return num_replicas();
  return workers.compute_devices_for_worker(static_cast<int>(pipeline)).size();
}

size_t Source::num_replicas() const {
  if (feed != Feed::kElements) return static_cast<size_t>(core->num_local_replicas());
  size_t count = 0;
  for (size_t worker = 0; worker < pipelines.size(); ++worker) count += num_replicas(worker);
  return count;
}

internal::DataNodePtr Source::read_ahead(internal::DataNodePtr pipeline, size_t number) const {
  if (buffered < 0) return pipeline;
  size_t first = 0;
  for (size_t i = 0; i < number; ++i) first += num_replicas(i);
  const size_t replicas = num_replicas(number);
  if (copies) pipeline = make_copied(pipeline, copies, first, replicas);
  return internal::make_read_ahead(pipeline, static_cast<int64_t>(replicas) * (1 + buffered));
}

namespace {

bool is_infinite(const Source& source) {
  return std::all_of(source.pipelines.begin(), source.pipelines.end(), [](const auto& one) {
    return one.cardinality() == data::kInfiniteCardinality;
  });
}

// The spec of the first pipeline that has one: where it is found out by reading, a pipeline without
// elements has none.
StructureSpec known_spec(const Source& source) {
  if (source.whole) return source.whole->element_spec();
  for (size_t worker = 0; worker + 1 < source.pipelines.size(); ++worker) {
    try {
      return source.pipelines[worker].element_spec();
    } catch (const FailedPreconditionError&) {
    }
  }
  return source.pipelines.back().element_spec();
}

}  // namespace

StructureSpec Source::component_spec() const {
  const StructureSpec spec = known_spec(*this);
  if (!workers_end_alone || is_infinite(*this)) return spec;
  return spec.map([](const TensorSpec& leaf) {
    return leaf.shape() && !leaf.shape()->empty() ? leaf.with_batch_dim(kUnknownDim) : leaf;
  });
}

// What one element looked like is no promise about the others: then nothing is left out.
bool Source::fills_up_last_step() const {
  if (is_infinite(*this)) return false;
  if (workers_end_alone) return true;
  if (std::any_of(pipelines.begin(), pipelines.end(),
                  [](const auto& one) { return one.node()->guesses_spec(); })) {
    return true;
  }
  const std::vector<TensorSpec> leaves = known_spec(*this).flatten();
  return !std::all_of(leaves.begin(), leaves.end(),
                      [](const TensorSpec& leaf) { return leaf.is_fully_defined(); });
}

int64_t Source::own_steps(bool fills_up) const {
  const auto any_has = [&](int64_t cardinality) {
    return std::any_of(pipelines.begin(), pipelines.end(),
                       [&](const auto& one) { return one.cardinality() == cardinality; });
  };
  // It ends when the last worker does, or the first where no step is filled up.
  if (fills_up && any_has(data::kInfiniteCardinality)) return data::kInfiniteCardinality;
  if (any_has(data::kUnknownCardinality)) return data::kUnknownCardinality;
  std::optional<int64_t> steps;
  for (size_t i = 0; i < pipelines.size(); ++i) {
    const int64_t elements = pipelines[i].cardinality();
    if (elements == data::kInfiniteCardinality) continue;
    const auto replicas = feed == Feed::kPieces ? 1 : static_cast<int64_t>(num_replicas(i));
    const int64_t own = elements / replicas + (fills_up && elements % replicas != 0 ? 1 : 0);
    steps = !steps ? own : fills_up ? std::max(*steps, own) : std::min(*steps, own);
  }
  return steps.value_or(data::kInfiniteCardinality);
}

}  // namespace cohort::distribute::internal_input
