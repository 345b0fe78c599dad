// A map's function with what turns elements and blocks into its results.
#pragma once

#include <cstdint>

#include "cohort/core/spec.h"
#include "cohort/core/structure.h"
#include "cohort/data/dataset.h"
#include "cohort/data/indexed.h"

namespace cohort::internal {

// Thread safety: immutable, as far as the user's function is.
class MapFunction {
 public:
  // Errors: InvalidArgument (vectorized, and an argument is a scalar).
  MapFunction(ElementFunction function, data::MapOptions options);

  bool vectorized() const { return options_.vectorized; }
  // Whether apply_block works: a function of blocks, or a loop over records.
  bool takes_blocks() const { return vectorized() || function_.scalar.has_value(); }
  // The result's spec where no element is needed to find it.
  std::optional<StructureSpec> declared_spec() const;

  // The result for the element at `index`, and those for the block of elements at `indices`.
  // Errors: what the function throws, with the element's index in front; InvalidArgument.
  Structure apply(const Structure& element, int64_t index) const;
  Structure apply_block(const Structure& block, const Positions& indices) const;

 private:
  Structure apply_vectorized(const Structure& block, const Positions& indices) const;
  void check(const Structure& result, const std::optional<StructureSpec>& spec,
             int64_t index) const;

  ElementFunction function_;
  data::MapOptions options_;
  std::optional<StructureSpec> block_spec_;  // output_spec with a new dimension 0
};

}  // namespace cohort::internal
