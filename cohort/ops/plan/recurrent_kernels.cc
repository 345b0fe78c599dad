#include "cohort/ops/plan/recurrent_kernels.h"

#include <algorithm>

#include "cohort/ops/kernels/register_sums.h"
#include "cohort/ops/kernels/vector_functions.h"

namespace cohort::internal::plan {
namespace {

// Some units of one row.
struct Place {
  int64_t row = 0;
  int64_t unit = 0;
  int64_t count = 0;
};

template <class Vector>
COHORT_INLINE void give_state(const RecurrentSizes& sizes, const ForwardStep& step, const Place& at,
                              const Vector& state, const Vector (&kept)[kKept]) {
  store_some(state, at.count, step.new_state + at.row * sizes.units + at.unit);
  if (step.output != nullptr) {
    store_some(state, at.count, step.output + at.row * step.output_distance + at.unit);
  }
  if (step.kept == nullptr) return;
  float* const to = step.kept + at.row * kKept * sizes.units + at.unit;
  for (int64_t k = 0; k < kKept; ++k) store_some(kept[k], at.count, to + k * sizes.units);
}

template <class Vector>
COHORT_INLINE void finish_lstm(const RecurrentSizes& sizes, const ForwardStep& step,
                               const Place& at, Vector (&sums)[kSums]) {
  sigmoid(sums[0]);
  sigmoid(sums[1]);
  hyperbolic_tangent(sums[2]);
  sigmoid(sums[3]);
  const int64_t offset = at.row * sizes.units + at.unit;
  Vector memory;
  load_or_zero(step.memory, offset, at.count, memory);
  memory = sums[1] * memory + sums[0] * sums[2];
  store_some(memory, at.count, step.new_memory + offset);
  hyperbolic_tangent(memory);
  if (step.kept != nullptr) store_some(memory, at.count, step.memory_tanh + offset);
  give_state<Vector>(sizes, step, at, sums[3] * memory, sums);
}

template <class Vector>
COHORT_INLINE void finish_gru(const RecurrentSizes& sizes, const ForwardStep& step, const Place& at,
                              Vector (&sums)[kSums]) {
  sigmoid(sums[0]);
  sigmoid(sums[1]);
  sums[2] += sums[1] * sums[3];
  hyperbolic_tangent(sums[2]);
  const int64_t offset = at.row * sizes.units + at.unit;
  Vector state;
  load_or_zero(step.state, offset, at.count, state);
  state = sums[0] * state + (1.f - sums[0]) * sums[2];
  give_state(sizes, step, at, state, sums);
}

// Works on `count` rows, kCount at most.
template <class Vector, Cell kCell, int kCount = kRows<Vector>>
COHORT_INLINE void add_gates(const RecurrentSizes& sizes, const float* panel,
                             const ForwardStep& step, int64_t row, int64_t count,
                             Block<Vector>& block) {
  if constexpr (kCount > 1) {
    if (count < kCount) {
      add_gates<Vector, kCell, kCount - 1>(sizes, panel, step, row, count, block);
      return;
    }
  }
  constexpr int kGates = kCell == Cell::kLstm ? 4 : 3;
  Vector sums[kCount][kSums];
#pragma GCC unroll 4
  for (int s = 0; s < kSums; ++s) {
    Vector bias;
    load(panel + s * kWidth<Vector>, bias);
#pragma GCC unroll 6
    for (int r = 0; r < kCount; ++r) sums[r][s] = bias;
  }
  panel += kSums * kWidth<Vector>;
  const Rows inputs{step.input + row * step.input_distance, step.input_distance, sizes.features};
  add_products<Vector, kCount, kGates, kGates - 1>(inputs, panel, sums);
  panel += sizes.features * kGates * kWidth<Vector>;
  if (step.state != nullptr) {
    const Rows states{step.state + row * sizes.units, sizes.units, sizes.units};
    add_products<Vector, kCount, kGates, kSums - 1>(states, panel, sums);
  }
  keep_sums<Vector, kCount>(sums, block);
}

template <class Vector, Cell kCell>
COHORT_INLINE void run_cell(const RecurrentSizes& sizes, const float* packed,
                            const ForwardStep& step) {
  const int64_t panel = (kSums + sizes.gates() * (sizes.features + sizes.units)) * kWidth<Vector>;
  for (int64_t unit = 0; unit < sizes.units; unit += kWidth<Vector>, packed += panel) {
    for (int64_t row = 0; row < step.rows; row += kRows<Vector>) {
      const int64_t count = std::min<int64_t>(kRows<Vector>, step.rows - row);
      Block<Vector> block;
      add_gates<Vector, kCell>(sizes, packed, step, row, count, block);
      for (int64_t r = 0; r < count; ++r) {
        const Place at{row + r, unit, std::min(kWidth<Vector>, sizes.units - unit)};
        if constexpr (kCell == Cell::kLstm) {
          finish_lstm(sizes, step, at, block[r]);
        } else {
          finish_gru(sizes, step, at, block[r]);
        }
      }
    }
  }
}

template <class Vector>
COHORT_INLINE void run_any_cell(const RecurrentSizes& sizes, const float* packed,
                                const ForwardStep& step) {
  if (sizes.cell == Cell::kLstm) {
    run_cell<Vector, Cell::kLstm>(sizes, packed, step);
  } else {
    run_cell<Vector, Cell::kGru>(sizes, packed, step);
  }
}

// The gradient of what a step gives.
template <class Vector>
COHORT_INLINE void load_gradient(const RecurrentSizes& sizes, const BackwardStep& step,
                                 const Place& at, Vector& gradient) {
  Vector more;
  load_or_zero(step.from_sums, at.row * sizes.units + at.unit, at.count, gradient);
  load_or_zero(step.from_outputs, at.row * step.from_outputs_distance + at.unit, at.count, more);
  gradient += more;
}

template <class Vector>
COHORT_INLINE void lstm_gradient(const RecurrentSizes& sizes, const BackwardStep& step,
                                 const Place& at) {
  const int64_t units = sizes.units, offset = at.row * units + at.unit;
  Vector gates[kKept], state, memory, before, tanh;
  for (int g = 0; g < kKept; ++g) {
    load_some(step.kept + (at.row * kKept + g) * units + at.unit, at.count, gates[g]);
  }
  load_gradient(sizes, step, at, state);
  load_some(step.carried + offset, at.count, memory);
  load_or_zero(step.memory, offset, at.count, before);
  load_some(step.memory_tanh + offset, at.count, tanh);
  memory += state * gates[3] * (1.f - tanh * tanh);
  float* const sums = step.sums + at.row * sizes.columns() + at.unit;
  store_some<Vector>(memory * gates[2] * gates[0] * (1.f - gates[0]), at.count, sums);
  store_some<Vector>(memory * before * gates[1] * (1.f - gates[1]), at.count, sums + units);
  store_some<Vector>(memory * gates[0] * (1.f - gates[2] * gates[2]), at.count, sums + 2 * units);
  store_some<Vector>(state * tanh * gates[3] * (1.f - gates[3]), at.count, sums + 3 * units);
  store_some<Vector>(memory * gates[1], at.count, step.carried + offset);
}

template <class Vector>
COHORT_INLINE void gru_gradient(const RecurrentSizes& sizes, const BackwardStep& step,
                                const Place& at) {
  const int64_t units = sizes.units, offset = at.row * units + at.unit;
  Vector kept[kKept], state, carried, before;
  for (int k = 0; k < kKept; ++k) {
    load_some(step.kept + (at.row * kKept + k) * units + at.unit, at.count, kept[k]);
  }
  load_gradient(sizes, step, at, state);
  load_some(step.carried + offset, at.count, carried);
  load_or_zero(step.state, offset, at.count, before);
  state += carried;
  const Vector update = state * (before - kept[2]) * kept[0] * (1.f - kept[0]);
  const Vector candidate = state * (1.f - kept[0]) * (1.f - kept[2] * kept[2]);
  const Vector reset = candidate * kept[3] * kept[1] * (1.f - kept[1]);
  const int64_t sums = at.row * sizes.columns() + at.unit;
  for (float* const to : {step.sums + sums, step.state_sums + sums}) {
    store_some(update, at.count, to);
    store_some(reset, at.count, to + units);
  }
  store_some(candidate, at.count, step.sums + sums + 2 * units);
  store_some<Vector>(candidate * kept[1], at.count, step.state_sums + sums + 2 * units);
  store_some<Vector>(state * kept[0], at.count, step.carried + offset);
}

template <class Vector>
COHORT_INLINE void run_any_gradient(const RecurrentSizes& sizes, const BackwardStep& step) {
  for (Place at; at.row < step.rows; ++at.row) {
    for (at.unit = 0; at.unit < sizes.units; at.unit += kWidth<Vector>) {
      at.count = std::min(kWidth<Vector>, sizes.units - at.unit);
      if (sizes.cell == Cell::kLstm) {
        lstm_gradient<Vector>(sizes, step, at);
      } else {
        gru_gradient<Vector>(sizes, step, at);
      }
    }
  }
}

COHORT_WIDE void step_wide(const RecurrentSizes& sizes, const float* packed,
                           const ForwardStep& step) {
  run_any_cell<Floats>(sizes, packed, step);
}
COHORT_HALF void step_half(const RecurrentSizes& sizes, const float* packed,
                           const ForwardStep& step) {
  run_any_cell<HalfFloats>(sizes, packed, step);
}
void step_plain(const RecurrentSizes& sizes, const float* packed, const ForwardStep& step) {
  run_any_cell<HalfFloats>(sizes, packed, step);
}

COHORT_WIDE void gradient_wide(const RecurrentSizes& sizes, const BackwardStep& step) {
  run_any_gradient<Floats>(sizes, step);
}
COHORT_HALF void gradient_half(const RecurrentSizes& sizes, const BackwardStep& step) {
  run_any_gradient<HalfFloats>(sizes, step);
}
void gradient_plain(const RecurrentSizes& sizes, const BackwardStep& step) {
  run_any_gradient<HalfFloats>(sizes, step);
}

// `count` numbers of a vector's width, zeros for the others.
float* append(const float* from, int64_t count, int64_t width, float* to) {
  std::copy_n(from, count, to);
  std::fill_n(to + count, width - count, 0.f);
  return to + width;
}

float* append_biases(const RecurrentSizes& sizes, int64_t unit, int64_t width, const float* bias,
                     float* to) {
  std::fill_n(to, kSums * width, 0.f);
  const int64_t units = sizes.units, count = std::min(width, units - unit);
  for (int64_t i = 0; bias != nullptr && i < count; ++i) {
    const float* const own = bias + unit + i;
    if (sizes.cell == Cell::kLstm) {
      for (int64_t s = 0; s < kSums; ++s) to[s * width + i] = own[s * units];
    } else {
      to[i] = own[0] + own[3 * units];
      to[width + i] = own[units] + own[4 * units];
      to[2 * width + i] = own[2 * units];
      to[3 * width + i] = own[5 * units];
    }
  }
  return to + kSums * width;
}

}  // namespace

int64_t vector_width() {
  static const int64_t width = has_wide_registers() && has_half_registers() ? kVector : kVector / 2;
  return width;
}

int64_t packed_size(const RecurrentSizes& sizes, int64_t width) {
  return round_up(sizes.units, width) * (kSums + sizes.gates() * (sizes.features + sizes.units));
}

void pack(const RecurrentSizes& sizes, int64_t width, const float* kernel, const float* recurrent,
          const float* bias, float* packed) {
  for (int64_t unit = 0; unit < sizes.units; unit += width) {
    const int64_t count = std::min(width, sizes.units - unit);
    packed = append_biases(sizes, unit, width, bias, packed);
    const auto append_rows = [&](const float* from, int64_t rows) {
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t gate = 0; gate < sizes.gates(); ++gate) {
          packed = append(from + row * sizes.columns() + gate * sizes.units + unit, count, width,
                          packed);
        }
      }
    };
    append_rows(kernel, sizes.features);
    append_rows(recurrent, sizes.units);
  }
}

void run_step(const RecurrentSizes& sizes, int64_t width, const float* packed,
              const ForwardStep& step) {
  best_of(width, step_wide, step_half, step_plain)(sizes, packed, step);
}

void run_gradient_step(const RecurrentSizes& sizes, int64_t width, const BackwardStep& step) {
  best_of(width, gradient_wide, gradient_half, gradient_plain)(sizes, step);
}

}  // namespace cohort::internal::plan
