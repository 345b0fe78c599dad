#include "cohort/keras/layers/preprocessing/adapt.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/data/dataset.h"
#include "cohort/distribute/strategies/context.h"

namespace cohort::internal {

using keras::layers::AdaptOptions;

void check_adapts_outside_of_steps(const std::string& where) {
  if (!distribute::has_strategy() || distribute::in_cross_replica_context()) return;
  throw FailedPreconditionError(
      str(where, ": adapt was called in a step; call it before training"));
}

void read_to_adapt(const data::Dataset& dataset, const AdaptOptions& options,
                   const std::string& where, FunctionRef<void(const Leaf& element)> learn) {
  check_adapts_outside_of_steps(where);
  if (!options.steps && dataset.cardinality() == data::kInfiniteCardinality) {
    throw InvalidArgumentError(str(where, ": adapt to a dataset without an end needs .steps"));
  }
  if (options.steps && *options.steps < 0) {
    throw InvalidArgumentError(str(where, ": adapt cannot take ", *options.steps, " steps"));
  }
  int64_t left = options.steps.value_or(std::numeric_limits<int64_t>::max());
  auto iterator = dataset.iterator();
  while (left-- > 0) {
    const std::optional<Structure> element = iterator.next();
    if (!element) break;
    if (!element->is_leaf()) {
      throw InvalidArgumentError(str(where, ": adapt takes elements of one leaf, but got ",
                                     *element, "; map the dataset to that leaf"));
    }
    learn(element->leaf());
  }
}

void read_to_adapt(const Leaf& data, const AdaptOptions& options, const std::string& where,
                   FunctionRef<void(const Leaf& batch)> learn) {
  check_adapts_outside_of_steps(where);
  if (options.batch_size < 1) {
    throw InvalidArgumentError(str(where, ": batch_size is ", options.batch_size));
  }
  if (data.dim() == 0) return learn(data);
  const int64_t size = data.sizes()[0];
  for (int64_t begin = 0; begin < size; begin += std::min(options.batch_size, size - begin)) {
    learn(data.slice(begin, begin + std::min(options.batch_size, size - begin)));
  }
}

}  // namespace cohort::internal
