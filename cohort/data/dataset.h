// Input pipelines: where elements come from and what happens to them before a step sees them.
//
//   auto dataset = data::Dataset::from_tensor_slices(tuple(images, labels))
//                      .shuffle(10'000, {.seed = 1})
//                      .map([](const Tensor& image, const Tensor& label) {
//                        return tuple(image / 255, label);
//                      })
//                      .batch(128)
//                      .prefetch(2);
//   for (const Structure& batch : dataset) train(batch[0], batch[1]);
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/spec.h"
#include "cohort/core/structure.h"
#include "cohort/data/cardinality.h"
#include "cohort/data/dataset_iterator.h"
#include "cohort/data/element_function.h"
#include "cohort/data/options.h"

namespace cohort::data {

struct BatchOptions {
  // Leaves out the last batch where it has fewer elements, so that every batch has one shape.
  bool drop_remainder = false;
};

struct ShuffleOptions {
  // Two datasets with one seed give one order. Default: from random::set_seed, or a random one.
  std::optional<uint64_t> seed = {};
  // A new order for each pass over the data, in range-for and under repeat alike.
  bool reshuffle_each_iteration = true;
};

struct MapOptions {
  // The function takes a block of elements stacked along a new dimension 0, of any number, and
  // returns one result for each, stacked alike: for functions that cost more to call than to run.
  bool vectorized = false;
  // What the function returns for an element, checked at run time. Default: found by calling it
  // once for the first element, when the spec is first asked for.
  std::optional<StructureSpec> output_spec = {};
};

// A description of a sequence of elements: a handle to an immutable graph, cheap to copy. Nothing
// is read before an iterator is. Transformations return new datasets that share the graph.
// Thread safety: any thread; each iterator belongs to one thread at a time.
//
// User functions are called from whichever thread reads, for one element at a time, with grad mode
// off; they depend on their arguments alone, since they may be called in another order (below a
// shuffle) or again (after a restore). What they throw comes out of next() with the element's
// index in front, of the same class where it is a cohort::Error; the iterator then goes on with the
// next element. A failed element takes its batch with it.
class Dataset {
 public:
  // The int64 scalars start, start + step, ... before `stop`. Errors: InvalidArgument (step 0).
  static Dataset range(int64_t stop);
  static Dataset range(int64_t start, int64_t stop, int64_t step = 1);
  // One element.
  static Dataset from_tensors(Structure element);
  // The rows of dimension 0 of all leaves, as views: writing to an element writes to `rows`.
  // Errors: InvalidArgument (no leaves, a scalar, different sizes: names the leaves).
  static Dataset from_tensor_slices(Structure rows);
  // Elements that are tuples, or dicts, of one element of each; as long as the shortest.
  // Errors: InvalidArgument (none; a key twice).
  static Dataset zip(std::vector<Dataset> datasets);
  static Dataset zip(std::vector<std::pair<std::string, Dataset>> datasets);

  // fn(element); see element_function.h for what a function may take and return. Scalar functions
  // run as loops over blocks where the input gives blocks.
  // Errors: InvalidArgument (vectorized, and an argument is a scalar). While reading:
  // InvalidArgument (the element does not fit the arguments, the result not output_spec).
  template <class F>
  Dataset map(F&& fn, MapOptions options = {}) const {
    return map_erased(internal::make_element_function(std::forward<F>(fn)), std::move(options));
  }
  // Keeps the elements for which fn(element), a bool or a bool scalar tensor, is true.
  template <class F>
  Dataset filter(F&& fn) const {
    return filter_erased(internal::make_element_function(std::forward<F>(fn)));
  }
  // `batch_size` consecutive elements stacked; the last batch may be smaller.
  // Errors: InvalidArgument (batch_size below 1). While reading: InvalidArgument (elements of
  // different form or shape: names both).
  Dataset batch(int64_t batch_size, BatchOptions options = {}) const;
  // The rows of each element one by one. While reading: InvalidArgument (scalars, different sizes).
  Dataset unbatch() const;
  // Draws uniformly from a buffer of the next `buffer_size` elements; with a buffer as large as the
  // dataset, every order is equally likely. Where the input can be read at any position, the buffer
  // holds positions, not elements. Errors: InvalidArgument (buffer_size below 1).
  Dataset shuffle(int64_t buffer_size, ShuffleOptions options = {}) const;
  // All elements `count` times over; for ever where count is -1.
  // Errors: InvalidArgument (count below -1).
  Dataset repeat(int64_t count = -1) const;
  // The first `count`; all where count is -1. Errors: InvalidArgument (count below -1).
  Dataset take(int64_t count) const;
  // All but the first `count`; none where count is -1. Errors: InvalidArgument (count below -1).
  Dataset skip(int64_t count) const;
  // The elements whose index modulo `num_shards` is `index`.
  // Errors: InvalidArgument (num_shards below 1, index outside [0, num_shards)).
  Dataset shard(int64_t num_shards, int64_t index) const;
  // (start, e0), (start + 1, e1), ...
  Dataset enumerate(int64_t start = 0) const;
  // Then those of `other`, which have the same form.
  Dataset concatenate(const Dataset& other) const;
  // Reads up to `buffer_size` elements ahead on a thread of its own.
  // Errors: InvalidArgument (buffer_size below 1).
  Dataset prefetch(int64_t buffer_size) const;

  // These options over those of the inputs.
  Dataset with_options(const Options& options) const;
  const Options& options() const { return options_; }

  // What every element fits. Errors: FailedPrecondition (a map over no elements, without
  // output_spec), what the functions throw.
  StructureSpec element_spec() const;
  // A number, kInfiniteCardinality or kUnknownCardinality; nothing is read.
  int64_t cardinality() const;
  // The graph, one node a line, the last transformation first:
  //   batch(batch_size=2): TensorSpec(shape=(None,), dtype=int64), 5 elements
  //     range(start=0, stop=10, step=1): ...
  std::string explain() const;

  // A new pass over the data. Pass k of a dataset object (copies count together) shuffles as pass k
  // of its repeat() does.
  DatasetIterator iterator() const;
  ElementCursor begin() const { return ElementCursor(iterator()); }
  std::default_sentinel_t end() const { return {}; }

  // For rewrites of the graph, and for nodes defined elsewhere.
  explicit Dataset(internal::DataNodePtr node, Options options = {});
  const internal::DataNodePtr& node() const { return node_; }

 private:
  Dataset map_erased(internal::ElementFunction fn, MapOptions options) const;
  Dataset filter_erased(internal::ElementFunction fn) const;

  internal::DataNodePtr node_;
  Options options_;
  std::shared_ptr<std::atomic<uint64_t>> passes_;  // iterators made so far
};

}  // namespace cohort::data
