#include "cohort/optim/update_rule.h"

#include <c10/util/accumulate.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "cohort/optim/checks.h"

namespace cohort::optim {

double number_of_step(const StepScalars& scalars, DType dtype, size_t i) {
  const bool is_float = dtype == float32;
  if (i == 0) return is_float ? double{scalars.step_size_float32} : scalars.step_size_float64;
  if (i == kStepNumbers - 1) return scalars.learning_rate;
  return is_float ? double{scalars.more_float32[i - 1]} : scalars.more_float64[i - 1];
}

namespace {

using internal::str;

// A zero gradient of any dtype, in a piece that stays in the first-level cache.
constexpr int64_t kZerosBytes = 4096;
alignas(64) constexpr std::array<std::byte, kZerosBytes> kZeros{};

void check_row_ids(const SparseSlice& slice) {
  int64_t previous = -1;
  for (int64_t i = 0; i < slice.num_row_ids; ++i) {
    const int64_t id = slice.row_ids[i];
    if (id < 0 || id >= slice.num_rows) {
      throw InvalidArgumentError(str("row id ", id, " (number ", i,
                                     " of a sparse gradient) is not in [0, ", slice.num_rows,
                                     "), the rows of the variable"));
    }
    if (id <= previous) {
      throw InvalidArgumentError(
          str("row ids of a sparse gradient must be strictly ascending, but ", id, " follows ",
              previous, ": sum the rows of equal ids and sort them first"));
    }
    previous = id;
  }
}

// A sparse slice cut into dense ones.
class RowUpdater {
 public:
  RowUpdater(const UpdateRule& rule, const StepScalars& scalars, const SparseSlice& slice)
      : rule_(rule),
        scalars_(scalars),
        slice_(slice),
        item_bytes_(slice.dtype == float64 ? sizeof(double) : sizeof(float)),
        num_slots_(rule.num_slots()) {}

  // Rows [begin, end) with the gradient's rows from `gradient_row` on.
  void update(int64_t begin, int64_t end, int64_t gradient_row) const {
    const auto* gradient = static_cast<const std::byte*>(slice_.gradient);
    update_elements(begin * slice_.row_size, (end - begin) * slice_.row_size,
                    gradient + gradient_row * slice_.row_size * item_bytes_);
  }

  // Rows [begin, end) with a gradient of zeros.
  void update_with_zeros(int64_t begin, int64_t end) const {
    const int64_t step = kZerosBytes / item_bytes_;
    const int64_t last = end * slice_.row_size;
    for (int64_t first = begin * slice_.row_size; first < last; first += step) {
      update_elements(first, std::min(step, last - first), kZeros.data());
    }
  }

 private:
  void update_elements(int64_t first, int64_t size, const void* gradient) const {
    const int64_t offset = first * item_bytes_;
    std::array<void*, kMaxSlots> slots{};
    for (int i = 0; i < num_slots_; ++i)
      slots[i] = static_cast<std::byte*>(slice_.slots[i]) + offset;
    rule_.update(scalars_, {.param = static_cast<std::byte*>(slice_.param) + offset,
                            .slots = slots.data(),
                            .gradient = gradient,
                            .size = size,
                            .dtype = slice_.dtype});
  }

  const UpdateRule& rule_;
  const StepScalars& scalars_;
  const SparseSlice& slice_;
  const int64_t item_bytes_;
  const int num_slots_;
};

}  // namespace

std::vector<int64_t> slot_shape(SlotForm form, at::IntArrayRef variable) {
  if (!slot_is_used(form, variable.size())) return {};
  std::vector<int64_t> shape = variable.vec();
  if (form == SlotForm::kWithoutLast) shape.pop_back();
  if (form == SlotForm::kWithoutSecondLast) shape.erase(shape.end() - 2);
  return shape;
}

std::vector<DerivedScalar> UpdateRule::derived_scalars(int64_t) const { return {}; }

void UpdateRule::update_whole(const StepScalars& scalars, const WholeVariable& whole) const {
  update(scalars, {.param = whole.param,
                   .slots = whole.slots,
                   .gradient = whole.gradient,
                   .size = c10::multiply_integers(whole.shape),
                   .dtype = whole.dtype});
}

void UpdateRule::update_tensors(const StepScalars& scalars, const TensorSlice& slice) const {
  for (size_t i = 0; i < slice.params.size(); ++i) {
    const Tensor param = slice.params[i].cpu().contiguous();
    const Tensor gradient = slice.gradients[i].cpu().contiguous();
    std::vector<Tensor> slots;
    std::array<void*, kMaxSlots> memory{};
    for (size_t s = 0; s < slice.slots.size(); ++s) {
      slots.push_back(slice.slots[s][i].cpu().contiguous());
      memory[s] = slots[s].data_ptr();
    }
    update(scalars, {.param = param.data_ptr(),
                     .slots = memory.data(),
                     .gradient = gradient.data_ptr(),
                     .size = param.numel(),
                     .dtype = slice.dtype});
    slice.params[i].copy_(param);
    for (size_t s = 0; s < slots.size(); ++s) slice.slots[s][i].copy_(slots[s]);
  }
}

void update_rows(const UpdateRule& rule, const StepScalars& scalars, const SparseSlice& slice) {
  check_row_ids(slice);
  internal::dispatch_floating("a sparse gradient", slice.dtype, [](auto) {});
  const RowUpdater updater(rule, scalars, slice);
  const bool all_rows = !rule.zero_gradient_is_no_op();
  int64_t next_row = 0;
  for (int64_t i = 0; i < slice.num_row_ids;) {
    // Neighbouring rows are one dense slice.
    const int64_t begin = slice.row_ids[i];
    int64_t length = 1;
    while (i + length < slice.num_row_ids && slice.row_ids[i + length] == begin + length) ++length;
    if (all_rows) updater.update_with_zeros(next_row, begin);
    updater.update(begin, begin + length, i);
    next_row = begin + length;
    i += length;
  }
  if (all_rows) updater.update_with_zeros(next_row, slice.num_rows);
}

}  // namespace cohort::optim
