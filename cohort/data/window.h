// Windows: datasets of consecutive elements of a dataset, which may overlap.
//
//   auto windows = data::Dataset::range(7).window(3, {.shift = 1, .drop_remainder = true});
//   for (const data::Dataset& window : windows) ...                     // 0 1 2, then 1 2 3, ...
//   auto batches = windows.flat_map([](const data::Dataset& window) { return window.batch(3); });
#pragma once

#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "cohort/core/export.h"
#include "cohort/data/dataset.h"

namespace cohort::data {

// The windows that are left, as datasets. An element that fails makes every window fail that it is
// in, and no other.
// Thread safety: none.
class COHORT_API WindowIterator {
 public:
  explicit WindowIterator(DatasetIterator windows) : windows_(std::move(windows)) {}

  // Errors: as DatasetIterator's.
  std::optional<Dataset> next();
  // Errors: also OutOfRange at the end.
  Dataset get_next();
  // The position, and back to it: as DatasetIterator's.
  IteratorState state() const { return windows_.state(); }
  void restore(const IteratorState& state) { windows_.restore(state); }

 private:
  DatasetIterator windows_;
};

// The iterator of a range-for loop: an input iterator.
class COHORT_API WindowCursor {
 public:
  using iterator_concept = std::input_iterator_tag;
  using value_type = Dataset;
  using difference_type = std::ptrdiff_t;

  explicit WindowCursor(WindowIterator windows);

  const Dataset& operator*() const { return *window_; }
  const Dataset* operator->() const { return &*window_; }
  WindowCursor& operator++();
  void operator++(int) { ++*this; }
  bool operator==(std::default_sentinel_t) const { return !window_.has_value(); }

 private:
  std::shared_ptr<WindowIterator> windows_;
  std::optional<Dataset> window_;
};

// What Dataset::window returns: a sequence of datasets. Unlike tf.data's, a window of tuples is one
// dataset of tuples.
// Thread safety: as Dataset.
class COHORT_API WindowedDataset {
 public:
  explicit WindowedDataset(Dataset windows) : windows_(std::move(windows)) {}

  // The elements of fn(window), a Dataset, window after window. Its iterators have states as any.
  template <class F>
  Dataset flat_map(F&& fn) const {
    return windows_.flat_map(
        [fn = std::forward<F>(fn)](const Structure& window) { return fn(dataset_of(window)); });
  }
  // fn(window), a structure, for each.
  template <class F>
  Dataset map(F&& fn, MapOptions options = {}) const {
    return windows_.map(
        [fn = std::forward<F>(fn)](const Structure& window) { return fn(dataset_of(window)); },
        std::move(options));
  }
  // See Dataset.
  WindowedDataset take(int64_t count) const { return WindowedDataset(windows_.take(count)); }
  WindowedDataset skip(int64_t count) const { return WindowedDataset(windows_.skip(count)); }
  WindowedDataset shuffle(int64_t buffer_size, ShuffleOptions options = {}) const {
    return WindowedDataset(windows_.shuffle(buffer_size, options));
  }
  WindowedDataset repeat(int64_t count = -1) const {
    return WindowedDataset(windows_.repeat(count));
  }
  int64_t cardinality() const { return windows_.cardinality(); }

  WindowIterator iterator() const { return WindowIterator(windows_.iterator()); }
  WindowCursor begin() const { return WindowCursor(iterator()); }
  std::default_sentinel_t end() const { return {}; }

 private:
  friend class WindowIterator;
  static Dataset dataset_of(const Structure& window);

  Dataset windows_;  // each element is the tuple of a window's elements
};

}  // namespace cohort::data
