// A map's function with what turns elements and blocks into its results.
#pragma once

#include <cstdint>

#include "cohort/core/structure/spec.h"
#include "cohort/core/structure/structure.h"
#include "cohort/data/dataset.h"
#include "cohort/data/iteration/positions.h"
#include "cohort/data/iteration/work_group.h"
#include "cohort/ops/philox.h"
#include "cohort/ops/random.h"

namespace cohort::internal {

// The generators of a random function in one pass over the data.
struct RandomPass {
  uint64_t seed = 0;   // the map's and the worker's
  uint64_t epoch = 0;  // which pass
  random::RandomGenerator generator(int64_t index) const {
    return make_stream(mix_seeds(seed, epoch), static_cast<uint64_t>(index));
  }
};

// Thread safety: immutable, as far as the user's function is.
class MapFunction {
 public:
  // Errors: InvalidArgument (vectorized, and an argument is a scalar or a generator;
  // num_parallel_calls below 1).
  MapFunction(ElementFunction function, data::MapOptions options);

  const data::MapOptions& options() const { return options_; }
  bool vectorized() const { return options_.vectorized; }
  // Whether it asks for a generator: an element's result is then not a function of the element.
  bool is_random() const { return static_cast<bool>(function_.random); }
  // How many threads may be in the function at once, where `calls` calls are to be made; 1 where
  // that gains nothing.
  int64_t num_parallel_calls(int64_t calls) const;
  // Whether apply_block works: a function of blocks, or a loop over records.
  bool takes_blocks() const { return vectorized() || function_.scalar.has_value(); }
  // The result's spec where no element is needed to find it.
  std::optional<StructureSpec> declared_spec() const;

  // The result for the element at `index`, and those for the block of elements at `indices`.
  // Errors: what the function throws, with the element's index in front; InvalidArgument.
  Structure apply(const Structure& element, int64_t index, const RandomPass& random = {}) const;
  Structure apply_block(const Structure& block, const Positions& indices) const;

 private:
  Structure call(const Structure& element, int64_t index, const RandomPass& random) const;
  Structure apply_rows(const Structure& block, const Positions& indices) const;
  Structure apply_vectorized(const Structure& block, const Positions& indices) const;
  void check(const Structure& result, const std::optional<StructureSpec>& spec,
             int64_t index) const;

  ElementFunction function_;
  data::MapOptions options_;
  std::optional<StructureSpec> block_spec_;  // output_spec with a new dimension 0
  mutable CallCost cost_;                    // measured where AUTOTUNE asks for it
};

}  // namespace cohort::internal
