#include "cohort/keras/datasets/timeseries_dataset.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>

#include <algorithm>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/keras/datasets/numpy_shuffle.h"

namespace cohort::keras::utils {
namespace {

using internal::str;

template <class... Parts>
[[noreturn]] void refuse(const Parts&... parts) {
  throw InvalidArgumentError(str("timeseries_dataset_from_array: ", parts...));
}

void check_rows(const char* name, const Tensor& tensor) {
  if (tensor.defined() && tensor.dim() > 0) return;
  refuse(name, " is ", internal::describe(tensor), "; it needs a dimension of steps");
}

void check_indices(int64_t steps, const TimeseriesDatasetOptions& options) {
  const auto& start = options.start_index;
  const auto& end = options.end_index;
  if (start && (*start < 0 || *start >= steps)) {
    refuse("start_index is ", *start, "; with ", steps, " steps it is in [0, ", steps, ")");
  }
  if (end && (*end <= 0 || *end >= steps)) {
    refuse("end_index is ", *end, "; with ", steps, " steps it is in (0, ", steps, ")");
  }
  if (start && end && *end <= *start) {
    refuse("end_index is ", *end, ", not above start_index ", *start);
  }
}

void check(const Tensor& data, const std::optional<Tensor>& targets, int64_t sequence_length,
           const TimeseriesDatasetOptions& options) {
  check_rows("data", data);
  if (targets) check_rows("targets", *targets);
  const int64_t steps = data.size(0);
  check_indices(steps, options);
  if (sequence_length < 1) refuse("sequence_length is ", sequence_length, ", below 1");
  const auto check_step = [&](const char* name, int64_t value) {
    if (value >= 1 && value < steps) return;
    refuse(name, " is ", value, "; with ", steps, " steps it is in [1, ", steps, ")");
  };
  check_step("sampling_rate", options.sampling_rate);
  check_step("sequence_stride", options.sequence_stride);
  if (options.batch_size && *options.batch_size < 1) {
    refuse("batch_size is ", *options.batch_size, ", below 1");
  }
}

// The steps at which windows begin, counted from start_index.
Tensor start_positions(int64_t windows, const TimeseriesDatasetOptions& options) {
  const Tensor positions =
      at::arange(0, std::max<int64_t>(windows, 0), options.sequence_stride, at::dtype(at::kLong));
  if (!options.shuffle || !options.seed) return positions;
  const auto order = internal::numpy_shuffled(positions.size(0), *options.seed);
  const Tensor index = at::empty({positions.size(0)}, int64);
  std::copy(order.begin(), order.end(), index.data_ptr<int64_t>());
  return positions.index_select(0, index);
}

StructureSpec window_spec(const Tensor& data, int64_t length) {
  std::vector<int64_t> shape = data.sizes().vec();
  shape[0] = length;
  return TensorSpec(shape, data.scalar_type());
}

StructureSpec row_spec(const Tensor& rows) {
  return TensorSpec(rows.sizes().slice(1).vec(), rows.scalar_type());
}

// The windows that begin at each of the positions, gathered at once.
Tensor windows_at(const Tensor& data, const Tensor& positions, int64_t length, int64_t rate) {
  const Tensor offsets = at::arange(0, length * rate, rate, positions.options());
  const Tensor rows = (positions.unsqueeze(1) + offsets).reshape({-1});
  std::vector<int64_t> shape = data.sizes().vec();
  shape[0] = length;
  shape.insert(shape.begin(), positions.size(0));
  return data.index_select(0, rows).reshape(shape);
}

}  // namespace

data::Dataset timeseries_dataset_from_array(const Tensor& data,
                                            const std::optional<Tensor>& targets,
                                            int64_t sequence_length,
                                            const TimeseriesDatasetOptions& options) {
  check(data, targets, sequence_length, options);
  const int64_t begin = options.start_index.value_or(0);
  const int64_t end = options.end_index.value_or(data.size(0));
  const int64_t rate = options.sampling_rate;
  int64_t span = 0;
  if (__builtin_mul_overflow(sequence_length - 1, rate, &span)) span = end - begin;
  int64_t windows = end - begin - span;
  if (targets) windows = std::min(windows, targets->size(0));
  const Tensor positions = start_positions(windows, options);
  const Tensor used = data.detach().slice(0, begin, end);
  auto dataset = data::Dataset::from_tensor_slices(positions);
  if (!targets) {
    dataset = dataset.map(
        [=](const Tensor& positions) { return windows_at(used, positions, sequence_length, rate); },
        {.vectorized = true, .output_spec = window_spec(data, sequence_length)});
  } else {
    const Tensor aims = targets->detach().slice(0, begin, end);
    if (positions.size(0) > 0 && positions.max().item<int64_t>() >= aims.size(0)) {
      refuse("there are ", targets->size(0), " targets, but a window begins at step ",
             begin + positions.max().item<int64_t>());
    }
    dataset = dataset.map(
        [=](const Tensor& positions) {
          return tuple(windows_at(used, positions, sequence_length, rate),
                       aims.index_select(0, positions));
        },
        {.vectorized = true,
         .output_spec =
             StructureSpec::make_tuple({window_spec(data, sequence_length), row_spec(*targets)})});
  }
  if (options.shuffle) {
    const int64_t buffer = !options.seed        ? std::max<int64_t>(positions.size(0), 1)
                           : options.batch_size ? *options.batch_size * 8
                                                : 1024;
    dataset = dataset.shuffle(buffer, {.seed = options.seed});
  }
  if (options.batch_size) dataset = dataset.batch(*options.batch_size);
  return dataset.prefetch(data::AUTOTUNE);
}

}  // namespace cohort::keras::utils
