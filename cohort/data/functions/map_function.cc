#include "cohort/data/functions/map_function.h"

#include "cohort/core/error_context.h"
#include "cohort/core/structure/composite.h"
#include "cohort/core/structure/ragged_tensor.h"
#include "cohort/core/text.h"
#include "cohort/data/functions/parallel_calls.h"
#include "cohort/data/iteration/composite_rows.h"
#include "cohort/data/iteration/row_specs.h"
#include "cohort/data/iteration/stacking.h"

namespace cohort::internal {
namespace {

// The block with one tensor of as many rows in place of each RaggedTensor.
Structure row_form(const Structure& block) {
  if (!has_composites(block)) return block;
  return map_nodes(block, [](const Structure& node) -> Structure {
    if (composite_kind(node) != Composite::kRagged) return node;
    return RaggedTensor(node).row_lengths();
  });
}

}  // namespace

MapFunction::MapFunction(ElementFunction function, data::MapOptions options)
    : function_(std::move(function)), options_(std::move(options)) {
  if (options_.vectorized && function_.takes_scalars) {
    throw InvalidArgumentError(
        "map: the function takes scalars, but with vectorized = true it gets blocks of elements; "
        "leave vectorized out (scalar functions run as loops anyway), or take Tensors");
  }
  if (options_.vectorized && is_random()) {
    throw InvalidArgumentError(
        "map: the function asks for a generator, of which each element has its own, but with "
        "vectorized = true it gets blocks of elements; leave vectorized out");
  }
  check_parallel_calls("map", options_.num_parallel_calls);
  if (options_.output_spec && takes_blocks()) {
    block_spec_ = stacked_spec(*options_.output_spec, kUnknownDim);
  }
}

std::optional<StructureSpec> MapFunction::declared_spec() const {
  if (options_.output_spec) return options_.output_spec;
  if (function_.scalar && !vectorized()) return function_.scalar->result_spec();
  return std::nullopt;
}

int64_t MapFunction::num_parallel_calls(int64_t calls) const {
  if (!options_.num_parallel_calls) return 1;
  if (*options_.num_parallel_calls != data::AUTOTUNE) return *options_.num_parallel_calls;
  return cost_.worth_sharing(calls) ? num_pipeline_threads() : 1;
}

Structure MapFunction::call(const Structure& element, int64_t index,
                            const RandomPass& random) const {
  if (is_random()) return function_.random(random.generator(index), element);
  int64_t row = 0;
  return function_.scalar ? function_.scalar->apply(element, row) : function_.whole(element);
}

Structure MapFunction::apply(const Structure& element, int64_t index,
                             const RandomPass& random) const {
  const bool measured = options_.num_parallel_calls == data::AUTOTUNE;
  const auto start = measured ? CallCost::Clock::now() : CallCost::Clock::time_point();
  Structure result;
  try {
    result = with_marked_sparse(call(element, index, random));
  } catch (...) {
    rethrow_with_context(str("map: element ", index));
  }
  if (measured) cost_.add(start, 1);
  check(result, options_.output_spec, index);
  return result;
}

Structure MapFunction::apply_block(const Structure& block, const Positions& indices) const {
  const bool measured = options_.num_parallel_calls == data::AUTOTUNE;
  const auto start = measured ? CallCost::Clock::now() : CallCost::Clock::time_point();
  Structure result = vectorized() ? apply_vectorized(block, indices) : apply_rows(block, indices);
  if (measured) cost_.add(start, indices.size());
  return result;
}

Structure MapFunction::apply_rows(const Structure& block, const Positions& indices) const {
  Structure result;
  int64_t row = 0;
  try {
    result = function_.scalar->apply_block(block, row);
  } catch (...) {
    rethrow_with_context(str("map: element ", indices[row]));
  }
  check(result, block_spec_, indices[0]);
  return result;
}

Structure MapFunction::apply_vectorized(const Structure& block, const Positions& indices) const {
  const int64_t first = indices[0], last = indices[indices.size() - 1];
  Structure result;
  try {
    result = with_marked_sparse(function_.whole(block));
  } catch (...) {
    rethrow_with_context(str("map: the block of elements ", first, " to ", last));
  }
  row_form(result).for_each_with_path([&](const std::string& path, const Leaf& leaf) {
    const std::vector<int64_t> shape = leaf.sizes();
    if (!shape.empty() && shape[0] == indices.size()) return;
    throw InvalidArgumentError(str("map: the vectorized function got a block of ", indices.size(),
                                   " elements (", first, " to ", last, ") and returned shape ",
                                   shape_str(shape), " at ", place(path),
                                   "; dimension 0 must be one row an element"));
  });
  check(result, block_spec_, first);
  return result;
}

void MapFunction::check(const Structure& result, const std::optional<StructureSpec>& spec,
                        int64_t index) const {
  if (!options_.output_spec) return;
  if (const auto mismatch = spec->first_mismatch(result)) {
    throw InvalidArgumentError(
        str("map: the result for element ", index, " does not fit output_spec: ", *mismatch));
  }
}

}  // namespace cohort::internal
