// What fit, evaluate and predict read.
//
//   model.fit(images, labels, {.batch_size = 64});            // tensors
//   model.fit(dataset, {.epochs = 3});                         // batches of (x, y), global ones
//   model.fit(strategy.experimental_distribute_dataset(dataset), {.epochs = 3});
//   model.fit(keras::DatasetCreator(make_dataset), {.epochs = 3, .steps_per_epoch = 20});
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <utility>

#include "cohort/core/export.h"
#include "cohort/core/structure/structure.h"

namespace cohort::data {
class Dataset;
}
namespace cohort::distribute {
class DistributedDataset;
struct InputContext;
struct InputOptions;
}  // namespace cohort::distribute

namespace cohort {
namespace internal {
struct DataSource;
}

namespace keras {

// A function that makes the dataset of one input worker, of batches for one replica each: see
// Strategy::distribute_datasets_from_function. fit calls it once and keeps its iterator over the
// epochs, so an endless dataset needs .steps_per_epoch.
// Thread safety: immutable.
class COHORT_API DatasetCreator {
 public:
  using Function = std::function<data::Dataset(const distribute::InputContext&)>;

  // Errors: InvalidArgument (an empty function).
  explicit DatasetCreator(Function fn);
  DatasetCreator(Function fn, const distribute::InputOptions& options);

  const std::shared_ptr<const internal::DataSource>& source() const { return source_; }

 private:
  std::shared_ptr<const internal::DataSource> source_;
};

// Anything that holds examples. Thread safety: immutable.
class COHORT_API Data {
 public:
  // Tensors, or tuples or dicts of them, whose rows are the examples; an empty tuple stands for
  // none.
  template <class X>
  requires(std::convertible_to<X, Structure> && !std::same_as<std::remove_cvref_t<X>, Data>)
      Data(X&& x)
      : Data(Structure(std::forward<X>(x)), Structure()) {}
  Data(Structure x, Structure y, Structure sample_weight = Structure());
  // Elements are batches x, (x, y) or (x, y, sample_weight), of the rows of all replicas.
  Data(const data::Dataset& dataset);
  // A dataset that the model's strategy has distributed.
  Data(const distribute::DistributedDataset& dataset);
  Data(const DatasetCreator& creator) : source_(creator.source()) {}

  const internal::DataSource& source() const { return *source_; }

 private:
  std::shared_ptr<const internal::DataSource> source_;
};

// The members of a batch as training takes it: x, (x, y) or (x, y, sample_weight). What is missing
// is the empty tuple. A dict is an x.
struct Batch {
  Structure x;
  Structure y;
  Structure sample_weight;

  bool has_y() const { return y.num_leaves() > 0; }
  bool has_sample_weight() const { return sample_weight.num_leaves() > 0; }
};
// Errors: InvalidArgument (a tuple of another size).
COHORT_API Batch unpack_x_y_sample_weight(const Structure& data);

}  // namespace keras
}  // namespace cohort
