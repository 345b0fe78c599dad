// The steps of LSTM and GRU layers: their products, gates and gradients. Kernels are packed once a
// pass and read at every step. Sums do not depend on how many rows are computed at once.
#pragma once

#include <cstdint>

#include "cohort/ops/plan/operation.h"

namespace cohort::internal::plan {

struct RecurrentSizes {
  Cell cell = Cell::kLstm;
  int64_t features = 0;
  int64_t units = 0;

  int64_t gates() const { return cell == Cell::kLstm ? 4 : 3; }
  int64_t columns() const { return gates() * units; }  // of the kernels
};

// What a step keeps for its gradient, for each unit: the gates in Keras's order, and of a GRU the
// state's part of the candidate.
inline constexpr int64_t kKept = 4;

// How many numbers a vector has on this processor: kVector or half of it, for which loops are
// compiled.
int64_t vector_width();

// Both kernels and the biases, as a step reads them.
int64_t packed_size(const RecurrentSizes& sizes, int64_t width);
// kernel [features, columns], recurrent [units, columns], bias [columns], of a GRU [2, columns]; or
// nullptr.
void pack(const RecurrentSizes& sizes, int64_t width, const float* kernel, const float* recurrent,
          const float* bias, float* packed);

// Rows without gaps but for those whose distance is named.
struct ForwardStep {
  int64_t rows = 0;
  const float* input = nullptr;
  int64_t input_distance = 0;
  const float* state = nullptr;   // [rows, units], of the step before; nullptr: zeros
  const float* memory = nullptr;  // an LSTM's c, as state
  float* new_state = nullptr;
  float* new_memory = nullptr;
  float* kept = nullptr;         // [rows, kKept, units]; nullptr where no gradient follows
  float* memory_tanh = nullptr;  // [rows, units], with `kept`
  float* output = nullptr;       // the new state once more; may be nullptr
  int64_t output_distance = 0;
};
void run_step(const RecurrentSizes& sizes, int64_t width, const float* packed,
              const ForwardStep& step);

// Computes the gradients of a step's sums from those of its new state.
struct BackwardStep {
  int64_t rows = 0;
  const float* kept = nullptr;
  const float* state = nullptr;  // before the step; nullptr: zeros
  const float* memory = nullptr;
  const float* memory_tanh = nullptr;
  const float* from_sums = nullptr;     // [rows, units], by the next step's; nullptr: none
  const float* from_outputs = nullptr;  // [rows, units]; nullptr: none
  int64_t from_outputs_distance = 0;
  float* carried =
      nullptr;            // [rows, units]: what goes on past the sums, from the next step to this
  float* sums = nullptr;  // [rows, columns]
  float* state_sums = nullptr;  // a GRU's that the state has part in, where they differ
};
void run_gradient_step(const RecurrentSizes& sizes, int64_t width, const BackwardStep& step);

}  // namespace cohort::internal::plan
