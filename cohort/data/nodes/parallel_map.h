// Maps whose function runs on several threads at once.
#pragma once

#include <memory>

#include "cohort/data/functions/map_function.h"
#include "cohort/data/iteration/iterator.h"

namespace cohort::internal {

struct ParallelMapOptions {
  RandomPass random = {};
  bool deterministic = true;
};

std::unique_ptr<DataIterator> make_parallel_map_iterator(
    std::unique_ptr<DataIterator> input, std::shared_ptr<const MapFunction> function,
    const ParallelMapOptions& options);

}  // namespace cohort::internal
