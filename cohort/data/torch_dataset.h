// Data sets written for torch::data, as sources of pipelines.
//
//   auto dataset = data::from_torch_dataset(torch::data::datasets::MNIST(root)).batch(128);
//
// This header includes nothing of torch::data: any class with size() and get(index) is accepted,
// which all of its map-style data sets have. Those that only return batches in order are generators
// (Dataset::from_generator).
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "cohort/core/export.h"
#include "cohort/data/dataset.h"

namespace cohort::internal {

// A tensor, an Example<Data, Target> (a tuple of the two), or an Example<Data> (its data).
template <class Example>
Structure torch_example(Example&& example) {
  if constexpr (requires { Structure(example); }) {
    return Structure(std::forward<Example>(example));
  } else if constexpr (requires { Structure(example.target); }) {
    return tuple(example.data, example.target);
  } else {
    return Structure(example.data);
  }
}

// Elements by position, from a function that any thread may call.
COHORT_API data::Dataset make_indexed_source(std::string name, int64_t size,
                                             std::function<Structure(int64_t)> read);

}  // namespace cohort::internal

namespace cohort::data {

template <class D>
concept TorchDataset = requires(D dataset, size_t index) {
  dataset.get(index);
  { *dataset.size() } -> std::convertible_to<size_t>;
};

// Elements 0 .. size()-1, readable at any position, so shuffling and resuming cost nothing. get()
// is called by whichever thread reads, and by several at once if several iterators read.
// Errors: InvalidArgument (a data set that does not know its size).
template <TorchDataset D>
Dataset from_torch_dataset(D dataset) {
  auto shared = std::make_shared<D>(std::move(dataset));
  const auto size = shared->size();
  if (!size.has_value()) {
    throw InvalidArgumentError(
        "from_torch_dataset: the data set does not know its size; give its elements through "
        "Dataset::from_generator");
  }
  return internal::make_indexed_source(
      "from_torch_dataset", static_cast<int64_t>(*size), [shared](int64_t index) {
        return internal::torch_example(shared->get(static_cast<size_t>(index)));
      });
}

}  // namespace cohort::data
