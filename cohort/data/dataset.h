// Input pipelines: where elements come from, and how they are transformed before a step sees them.
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
#include <chrono>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/handle.h"
#include "cohort/core/structure/spec.h"
#include "cohort/core/structure/structure.h"
#include "cohort/data/dataset_iterator.h"
#include "cohort/data/element_function.h"
#include "cohort/data/generator.h"
#include "cohort/data/graph/cardinality.h"
#include "cohort/data/options.h"
#include "cohort/data/paths.h"
#include "cohort/data/reducer.h"

namespace cohort::data {

// Stands for a number of calls or a buffer size that the pipeline finds while it runs, from what it
// has to wait for.
inline constexpr int64_t AUTOTUNE = -1;
namespace experimental {
using data::AUTOTUNE;  // its name in older programs
}

struct BatchOptions {
  // Leaves out the last batch if it has fewer elements, so that all batches have the same shape.
  bool drop_remainder = false;
};

struct WindowOptions {
  // The distance from the first element of a window to that of the next. Default: the size.
  std::optional<int64_t> shift = {};
  // The distance from an element of a window to the next.
  int64_t stride = 1;
  // Leaves out windows at the end that have fewer elements.
  bool drop_remainder = false;
};

class WindowedDataset;

struct SampleFromDatasetsOptions {
  // How likely each dataset is, in proportion to the others. Default: all alike.
  std::vector<double> weights = {};
  // Default: as ShuffleOptions::seed.
  std::optional<uint64_t> seed = {};
  // Ends when a dataset is drawn that has no elements left. False: goes on with the others.
  bool stop_on_empty_dataset = false;
  // Draws otherwise in each pass over the data.
  bool rerandomize_each_iteration = false;
};

struct ChooseFromDatasetsOptions {
  // Ends when a dataset is chosen that has no elements left. False: that choice is left out.
  bool stop_on_empty_dataset = true;
};

// One of the two.
struct GroupByWindowOptions {
  // The number of elements of a window.
  std::optional<int64_t> window_size = {};
  // The number for each key, at least 1; asked when the first element of a window comes.
  std::function<int64_t(int64_t key)> window_size_func = {};
};

struct BucketBySequenceLengthOptions {
  // What PaddedBatchOptions say.
  std::vector<std::vector<int64_t>> padded_shapes = {};
  std::optional<Structure> padding_values = {};
  // Pads what is unknown in padded_shapes, or without them in element_spec, to one less than the
  // bucket's upper boundary instead of the longest in the batch. Elements must be shorter than the
  // last boundary.
  bool pad_to_bucket_boundary = false;
  // Makes batches as batch() does.
  bool no_padding = false;
  // Leaves out the batches at the end that have fewer elements.
  bool drop_remainder = false;
};

struct ShuffleOptions {
  // Two datasets with the same seed have the same order. Default: from random::set_seed, or random.
  std::optional<uint64_t> seed = {};
  // A new order for each pass over the data, in range-for and under repeat alike.
  bool reshuffle_each_iteration = true;
};

struct ListFilesOptions {
  // A new order for each pass. Workers that divide a shuffled list between them need the same seed;
  // otherwise some files are read twice and others never. Dividing a list without a seed logs a
  // warning.
  bool shuffle = true;
  // Default: from random::set_seed, or a random one.
  std::optional<uint64_t> seed = {};
  // The time limit for listing each pattern, beyond which it is a DeadlineExceeded error. 0: none.
  std::chrono::milliseconds read_timeout = std::chrono::seconds(60);
};

struct GeneratorOptions {
  // The spec that each element must fit, checked at run time. Default: found by making the first
  // element, when the spec is first requested.
  std::optional<StructureSpec> output_spec = {};
};

struct PaddedBatchOptions {
  // One shape per leaf, in flatten()'s order; kUnknownDim stands for the longest in the batch.
  // Default: every dimension is padded to the longest in the batch.
  std::vector<std::vector<int64_t>> padded_shapes = {};
  // A scalar for all leaves, or a structure of scalars of the elements' form.
  // Default: 0, false, "".
  std::optional<Structure> padding_values = {};
  bool drop_remainder = false;
};

struct InterleaveOptions {
  // The number of datasets that are read in turn. The same on every machine, unlike tf.data's
  // default.
  int64_t cycle_length = 10;
  // The number of elements that are read from one dataset before it is the next one's turn.
  int64_t block_length = 1;
  // The number of datasets, of those whose turn is next, that are read ahead at once on the thread
  // pool; AUTOTUNE: all of them. Default: none.
  std::optional<int64_t> num_parallel_calls = {};
  // False: if the dataset whose turn it is is not ready, an element of another one is taken.
  // Default: as Options::deterministic.
  std::optional<bool> deterministic = {};
};

struct IgnoreErrorsOptions {
  // Whether each error is logged.
  bool log_warning = false;
};

struct MapOptions {
  // The number of elements that are processed at once, on the thread pool of at most one thread per
  // core. AUTOTUNE: as many as that if a call takes long enough, else none. Default: none; the
  // reading thread makes the calls.
  std::optional<int64_t> num_parallel_calls = {};
  // False: elements come in the order in which calls end. Default: as
  // Options::deterministic.
  std::optional<bool> deterministic = {};
  // The function takes a block of any number of elements, stacked along a new dimension 0, and
  // returns one result per element, stacked in the same way: for functions that cost more to call
  // than to run.
  bool vectorized = false;
  // The spec of the function's result for one element, checked at run time. Default: found by
  // calling it once for the first element, when the spec is first requested.
  std::optional<StructureSpec> output_spec = {};
  // The seed of the generators of a function that asks for one. Element i of a pass gets the
  // generator (seed, worker, pass, i), whichever thread calls, and whenever. Default: as
  // ShuffleOptions::seed.
  std::optional<uint64_t> seed = {};
};

// A description of a sequence of elements: a handle to an immutable graph, cheap to copy. Nothing
// is read until an iterator reads. Transformations return new datasets that share the graph.
// Thread safety: any thread; each iterator belongs to one thread at a time.
//
// User functions are called from whichever thread reads, for one element at a time, with grad mode
// off. They must depend on their arguments alone, since they may be called in another order (below
// a shuffle) or again (after a restore). An exception from one comes out of next() with the
// element's index in front, and keeps its class if it is a cohort::Error; the iterator then
// continues with the next element. A failed element takes its batch with it.
class COHORT_API Dataset {
 public:
  // The int64 scalars start, start + step, ... before `stop`. Errors: InvalidArgument (step 0).
  static Dataset range(int64_t stop);
  static Dataset range(int64_t start, int64_t stop, int64_t step = 1);
  // One element.
  static Dataset from_tensors(Structure element);
  // The rows of dimension 0 of all leaves, as views: writing to an element writes to `rows`.
  // Errors: InvalidArgument (no leaves, a scalar, different sizes: names the leaves).
  static Dataset from_tensor_slices(Structure rows);
  // The paths of the files that match a glob (*, ? and [...] within a name; * matches no leading
  // dot), as they are at the time of the call, sorted, and then shuffled if requested.
  // Errors: NotFound (no file matches: names the patterns), PermissionDenied (also if a directory
  // may not be listed), DeadlineExceeded.
  static Dataset list_files(const Paths& patterns, ListFilesOptions options = {});
  // Each element is a tuple or dict of one element of each dataset; as long as the shortest.
  // Errors: InvalidArgument (no datasets; a key twice).
  static Dataset zip(std::vector<Dataset> datasets);
  static Dataset zip(std::vector<std::pair<std::string, Dataset>> datasets);
  // The elements, which may differ in shape. They are detached, as from_tensors'.
  // Errors: InvalidArgument (no elements; another form or dtype: names the element).
  static Dataset from_list(std::vector<Structure> elements);
  // start, start + step, ... as scalars, without an end.
  static Dataset counter(int64_t start = 0, int64_t step = 1, DType dtype = int64);
  // Each element comes from one of the datasets, which is drawn at random. The order is not
  // TensorFlow's, only how often each dataset is drawn.
  // Errors: InvalidArgument (no datasets; not as many weights; a weight below 0, or all 0; elements
  // of another form or dtype).
  static Dataset sample_from_datasets(const std::vector<Dataset>& datasets,
                                      const SampleFromDatasetsOptions& options = {});
  // The same, with weights that change: each draw takes the next element of `weights`, of shape
  // [datasets], until one of them has ended.
  // Errors: InvalidArgument (also options.weights; elements of `weights` of another form). While
  // reading: InvalidArgument (as of weights: names the element), FailedPrecondition (100,000
  // weights in a row leave only datasets that have ended).
  static Dataset sample_from_datasets(const std::vector<Dataset>& datasets, const Dataset& weights,
                                      const SampleFromDatasetsOptions& options = {});
  // Each element is the next one of the dataset whose index is the next element of
  // `choice_dataset`, an integer scalar.
  // Errors: InvalidArgument (no datasets; elements of another form or dtype; choices that are no
  // integer scalars). While reading: InvalidArgument (there is no such dataset: names the choice).
  static Dataset choose_from_datasets(const std::vector<Dataset>& datasets,
                                      const Dataset& choice_dataset,
                                      ChooseFromDatasetsOptions options = {});
  // Elements that a user's code makes (generator.h). `generator` is one of
  //   - a function returning std::optional of what a map may return, nullopt at the end: each pass
  //     calls a copy of it, as it was given;
  //   - a function returning data::Generator<T>: each pass calls it once;
  //   - an object with next() as the first, std::string save() and restore(std::string_view): each
  //     pass has a copy.
  // A restore passes what save() wrote to an object of the third kind; the first two are run again
  // up to the position (explain() says which). An exception from next() comes out with the
  // element's index; after it functions are called again, while coroutines have ended.
  template <class G>
  static Dataset from_generator(G&& generator, GeneratorOptions options = {}) {
    return from_generator_erased(internal::make_generator_source(std::forward<G>(generator)),
                                 std::move(options));
  }
  // Endless random int64 scalars in [0, 2^32); the same in every pass. Default seed: as
  // ShuffleOptions::seed.
  static Dataset random(std::optional<uint64_t> seed = {});
  // The elements that save() wrote, readable at any position.
  // Errors: NotFound (nothing there), DataLoss (damaged or cut short: names file and byte); while
  // reading: DataLoss.
  static Dataset load(const std::string& path);

  // fn(element) for each element; see element_function.h for what a function may take and return.
  // Scalar functions run as loops over blocks if the input has blocks.
  // Errors: InvalidArgument (vectorized, and an argument is a scalar or a generator;
  // num_parallel_calls below 1). While reading: InvalidArgument (the element does not fit the
  // arguments, or the result does not fit output_spec).
  template <class F>
  Dataset map(F&& fn, MapOptions options = {}) const {
    internal::check_fault<internal::kElementFault<F>>();
    return map_erased(internal::make_map_function(std::forward<F>(fn)), std::move(options));
  }
  // The elements of the datasets that fn(element) returns, one dataset after another, or
  // cycle_length of them in turn. When it is the turn of a dataset that has ended, the next input
  // element takes its place. After a restore, fn is called again for datasets that were being read.
  // Errors: InvalidArgument (cycle_length, block_length, num_parallel_calls below 1).
  template <class F>
  Dataset flat_map(F&& fn) const {
    internal::check_fault<internal::kElementFault<F>>();
    return flat_map_erased(internal::make_function_to<Dataset>(std::forward<F>(fn)));
  }
  // The same with a type of dataset itself, of elements that are paths:
  //   files.interleave<TFRecordDataset>({.cycle_length = 4});
  template <internal::DatasetOfPath<Dataset> Source>
  Dataset flat_map() const {
    return flat_map_erased(internal::make_source<Source, Dataset>);
  }
  template <internal::DatasetOfPath<Dataset> Source>
  Dataset interleave(InterleaveOptions options = {}) const {
    return interleave_erased(internal::make_source<Source, Dataset>, options);
  }
  template <class F>
  requires(!internal::DatasetOfPath<std::remove_cvref_t<F>, Dataset>) Dataset
      interleave(F&& fn, InterleaveOptions options = {})
  const {
    internal::check_fault<internal::kElementFault<F>>();
    return interleave_erased(internal::make_function_to<Dataset>(std::forward<F>(fn)), options);
  }
  // Keeps the elements for which fn(element), a bool or a bool scalar tensor, is true.
  template <class F>
  Dataset filter(F&& fn) const {
    internal::check_fault<internal::kElementFault<F>>();
    return filter_erased(internal::make_element_function(std::forward<F>(fn)));
  }
  // The elements before the first for which fn(element) is false.
  template <class F>
  Dataset take_while(F&& fn) const {
    internal::check_fault<internal::kElementFault<F>>();
    return take_while_erased(internal::make_element_function(std::forward<F>(fn)));
  }
  // fn(state, element) returns a pair: the next state, of the form and dtypes of `initial` (shapes
  // may change, and the width of floating-point numbers), and the resulting element. The state is
  // part of the iterator's state. fn may write to its state, which is memory of no element.
  template <class F>
  Dataset scan(Structure initial, F&& fn) const {
    internal::check_fault<internal::kElementFault<F>>();
    return scan_erased(std::move(initial), internal::make_element_function(std::forward<F>(fn)));
  }
  // Reads all elements, computes state = fn(state, element) for each, with a state as in scan, and
  // returns the last state. Never ends on an infinite dataset.
  // Errors: InvalidArgument (a state of another form or dtype).
  template <class F>
  Structure reduce(Structure initial, F&& fn) const {
    internal::check_fault<internal::kElementFault<F>>();
    return reduce_erased(std::move(initial), internal::make_element_function(std::forward<F>(fn)));
  }
  // Returns fn(*this): for transformations of a user's own, in a chain.
  template <class F>
  auto apply(F&& fn) const {
    return std::forward<F>(fn)(*this);
  }
  // `batch_size` consecutive elements stacked; the last batch may be smaller.
  // Errors: InvalidArgument (batch_size below 1). While reading: InvalidArgument (elements of
  // different form or shape: names both).
  Dataset batch(int64_t batch_size, BatchOptions options = {}) const;
  // Makes batches of elements of different shapes (of the same rank and dtype): each is padded at
  // the end of its dimensions.
  // Errors: InvalidArgument (batch_size below 1; a padded shape of another rank or shorter than a
  // dimension, a padding value that the dtype cannot hold). What cannot be known without reading is
  // said while reading, and names the element.
  Dataset padded_batch(int64_t batch_size, PaddedBatchOptions options = {}) const;
  // Makes batches of elements of different sizes of dimension 0 (ragged_tensor.h): tensors of rank
  // 1 or more become RaggedTensors, except those whose shape is known to be always the same.
  // Errors: InvalidArgument (batch_size below 1). While reading: InvalidArgument (other dimensions
  // differ: names both elements).
  Dataset ragged_batch(int64_t batch_size, BatchOptions options = {}) const;
  // Makes batches of one sparse tensor [batch_size, row_shape..] (sparse_tensor.h) of elements that
  // are dense tensors of numbers of different sizes; kUnknownDim in row_shape stands for the
  // longest in the batch. Every value is kept, also where it is 0.
  // Errors: InvalidArgument (batch_size below 1; elements of another form or rank). While reading:
  // InvalidArgument (an element is larger than row_shape: names it).
  Dataset sparse_batch(int64_t batch_size, std::vector<int64_t> row_shape) const;
  // Datasets of `size` elements each, which may overlap: see window.h.
  // Errors: InvalidArgument (size, shift or stride below 1).
  WindowedDataset window(int64_t size, WindowOptions options = {}) const;
  // Gathers elements with the same key_func(element), an integer, until there are as many as the
  // window has; then the elements of reduce_func(key, window) follow. At the end of the input come
  // the windows that are not full, from the least key on. After a restore, reduce_func is called
  // again for the window that was being read.
  // Errors: InvalidArgument (window_size below 1; both options or none). While reading:
  // InvalidArgument (key_func returned no integer, window_size_func less than 1).
  template <class F>
  Dataset group_by_window(F&& key_func,
                          std::function<Dataset(int64_t key, const Dataset& window)> reduce_func,
                          GroupByWindowOptions options) const {
    internal::check_fault<internal::kElementFault<F>>();
    return group_by_window_erased(internal::make_element_function(std::forward<F>(key_func)),
                                  std::move(reduce_func), std::move(options));
  }
  // Makes padded batches of elements of similar length, which element_length_func(element), an
  // integer, says. Bucket i holds lengths from bucket_boundaries[i - 1] to below
  // bucket_boundaries[i], the last one those from the last boundary on; its batches have
  // bucket_batch_sizes[i] elements.
  // Errors: InvalidArgument (not one size more than boundaries, boundaries that do not ascend, a
  // size below 1; as padded_batch). While reading: as padded_batch; InvalidArgument
  // (pad_to_bucket_boundary, and an element is as long as the last boundary).
  template <class F>
  Dataset bucket_by_sequence_length(F&& element_length_func, std::vector<int64_t> bucket_boundaries,
                                    std::vector<int64_t> bucket_batch_sizes,
                                    BucketBySequenceLengthOptions options = {}) const {
    internal::check_fault<internal::kElementFault<F>>();
    return bucket_by_sequence_length_erased(
        internal::make_element_function(std::forward<F>(element_length_func)),
        std::move(bucket_boundaries), std::move(bucket_batch_sizes), std::move(options));
  }
  // Reduces the elements of each key_func(element), an integer, to one (reducer.h); they come when
  // all elements were read, the least key first.
  // While reading: InvalidArgument (no integer; a state of another form or dtype).
  template <class F>
  Dataset group_by_reducer(F&& key_func, Reducer reducer) const {
    internal::check_fault<internal::kElementFault<F>>();
    return group_by_reducer_erased(internal::make_element_function(std::forward<F>(key_func)),
                                   std::move(reducer));
  }
  // The elements that have not come before: tensors of int32, int64 or strings. All that have come
  // are kept, in memory and in the iterator's state.
  // Errors: InvalidArgument (others; if that cannot be known without reading elements, while
  // reading).
  Dataset unique() const;
  // The only element. Errors: InvalidArgument (none, or several).
  Structure get_single_element() const;
  // The rows of the input's batches in batches of other sizes; the sizes are used in turn, over and
  // over. Size 0 gives a batch without rows, for which nothing is read, also after the last row if
  // all sizes up to it were filled.
  // Errors: InvalidArgument (no sizes, one below 0, all 0).
  Dataset rebatch(int64_t batch_size, BatchOptions options = {}) const;
  Dataset rebatch(std::vector<int64_t> batch_sizes, BatchOptions options = {}) const;
  // The rows of each element one by one. While reading: InvalidArgument (scalars, different sizes).
  Dataset unbatch() const;
  // Draws uniformly from a buffer of the next `buffer_size` elements; with a buffer as large as the
  // dataset, every order is equally likely. If the input can be read at any position, the buffer
  // holds positions, not elements.
  // Errors: InvalidArgument (buffer_size below 1).
  Dataset shuffle(int64_t buffer_size, ShuffleOptions options = {}) const;
  // All elements, `count` times; endlessly if count is -1.
  // Errors: InvalidArgument (count below -1).
  Dataset repeat(int64_t count = -1) const;
  // The first `count` elements; all if count is -1. Errors: InvalidArgument (count below -1).
  Dataset take(int64_t count) const;
  // All but the first `count` elements; none if count is -1.
  // Errors: InvalidArgument (count below -1).
  Dataset skip(int64_t count) const;
  // The elements whose index modulo `num_shards` is `index`. SHARD_HINT for both marks the place
  // where distribution divides the dataset (AutoShardPolicy::HINT).
  // Errors: InvalidArgument (num_shards below 1, index outside [0, num_shards)).
  Dataset shard(int64_t num_shards, int64_t index) const;
  // (start, e0), (start + 1, e1), ...
  Dataset enumerate(int64_t start = 0) const;
  // These elements, then those of `other`.
  // Errors: InvalidArgument (another form or dtype; if that cannot be known without reading
  // elements, element_spec throws it).
  Dataset concatenate(const Dataset& other) const;
  // Reads up to `buffer_size` elements ahead on a thread of its own. AUTOTUNE: 2, and more as long
  // as the reader finds the buffer empty; 0: none.
  // Errors: InvalidArgument (buffer_size below 0).
  Dataset prefetch(int64_t buffer_size) const;
  // Keeps the elements of the input's first pass (number 0) once all were read without an error,
  // and returns them in every pass; writing to an element writes to the cache. Without a path the
  // cache is in memory, for all iterators of this dataset. With a path it is a file, for all
  // processes, which appears when it is complete. If AutoShardPolicy::FILE divides the input, each
  // worker's file has its own name: PATH-worker-0-of-2. While reading: InvalidArgument (the file is
  // of another pipeline: names the first node that differs), DataLoss (the file is damaged: names
  // the byte). A file that was cut short is written again.
  Dataset cache(std::string path = "") const;
  // The elements that do not fail; errors are skipped.
  Dataset ignore_errors(IgnoreErrorsOptions options = {}) const;
  // The same elements, whose number must be `count` (or kInfiniteCardinality).
  // Errors: InvalidArgument (count below -1). While reading: FailedPrecondition (one element more,
  // or the end too early).
  Dataset assert_cardinality(int64_t count) const;

  // Writes all elements into the directory `path`, which is created if necessary; elements saved
  // there before are replaced in one step at the end.
  // Errors: those of internal::FileSystem.
  void save(const std::string& path) const;

  // Sets options, which take precedence over those of the inputs. Logs once which of them have no
  // effect here.
  Dataset with_options(const Options& options) const;
  const Options& options() const { return options_; }

  // The spec that every element fits.
  // Errors: FailedPrecondition (a map over no elements, without output_spec), what the functions
  // throw.
  StructureSpec element_spec() const;
  // The number of elements, kInfiniteCardinality or kUnknownCardinality; nothing is read.
  int64_t cardinality() const;
  // The graph as text, one node per line, the last transformation first:
  //   batch(batch_size=2): TensorSpec(shape=(None,), dtype=int64), 5 elements
  //     range(start=0, stop=10, step=1): ...
  std::string explain() const;

  // A new pass over the data. Pass k of a dataset object (counted over all its copies) shuffles
  // like pass k of its repeat().
  DatasetIterator iterator() const;
  ElementCursor begin() const { return ElementCursor(iterator()); }
  std::default_sentinel_t end() const { return {}; }

  // For rewrites of the graph, and for nodes defined elsewhere.
  explicit Dataset(internal::DataNodePtr node, Options options = {});
  const internal::DataNodePtr& node() const { return node_.pointer(); }

 private:
  static Dataset from_generator_erased(internal::GeneratorSource source, GeneratorOptions options);
  Dataset map_erased(internal::ElementFunction fn, MapOptions options) const;
  Dataset flat_map_erased(std::function<Dataset(const Structure&)> fn) const;
  Dataset interleave_erased(std::function<Dataset(const Structure&)> fn,
                            const InterleaveOptions& options) const;
  Dataset group_by_window_erased(
      internal::ElementFunction key_func,
      std::function<Dataset(int64_t key, const Dataset& window)> reduce_func,
      GroupByWindowOptions options) const;
  Dataset bucket_by_sequence_length_erased(internal::ElementFunction element_length_func,
                                           std::vector<int64_t> bucket_boundaries,
                                           std::vector<int64_t> bucket_batch_sizes,
                                           BucketBySequenceLengthOptions options) const;
  Dataset group_by_reducer_erased(internal::ElementFunction key_func, Reducer reducer) const;
  Dataset filter_erased(internal::ElementFunction fn) const;
  Dataset take_while_erased(internal::ElementFunction fn) const;
  Dataset scan_erased(Structure initial, internal::ElementFunction fn) const;
  Structure reduce_erased(Structure initial, const internal::ElementFunction& fn) const;

  internal::Handle<const internal::DataNode, "Dataset"> node_;
  Options options_;
  internal::Handle<std::atomic<uint64_t>, "Dataset"> passes_;  // iterators made so far
};

}  // namespace cohort::data
