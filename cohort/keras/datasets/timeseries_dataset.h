// Windows of a time series, as keras.utils.timeseries_dataset_from_array.
//
//   auto windows = keras::utils::timeseries_dataset_from_array(
//       temperatures, temperatures.slice(0, 24), /*sequence_length=*/24);
//   for (const Structure& batch : windows) train(batch[0], batch[1]);  // a day and the hour after
#pragma once

#include <cstdint>
#include <optional>

#include "cohort/core/export.h"
#include "cohort/core/structure/tensor.h"
#include "cohort/data/dataset.h"

namespace cohort::keras::utils {

struct TimeseriesDatasetOptions {
  int64_t sequence_stride = 1;  // the steps from the begin of a window to that of the next
  int64_t sampling_rate = 1;    // the steps from an element of a window to the next
  std::optional<int64_t> batch_size = 128;  // std::nullopt: single windows
  // Shuffles the windows as Keras does for this seed, and elements in each pass anew. Without a
  // seed each pass is shuffled as a whole.
  bool shuffle = false;
  std::optional<uint64_t> seed = {};
  // Steps before and from these on are not used. Default: all are.
  std::optional<int64_t> start_index = {};
  std::optional<int64_t> end_index = {};
};

// Elements: windows of `sequence_length` rows of `data`, with the row of `targets` at the place
// where each begins: (windows, targets); without targets windows alone.
// Shapes: data [steps, ..], targets [n, ..] -> windows [batch, sequence_length, ..].
// Errors: InvalidArgument (a rank of 0; a length, stride or rate below 1, or a stride, a rate or an
// index beyond the data; fewer targets than windows need).
COHORT_API data::Dataset timeseries_dataset_from_array(
    const Tensor& data, const std::optional<Tensor>& targets, int64_t sequence_length,
    const TimeseriesDatasetOptions& options = {});

}  // namespace cohort::keras::utils
