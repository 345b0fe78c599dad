#include "cohort/keras/layers/recurrent/cell.h"

#include <ATen/ops/bmm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

namespace cohort::keras::layers {

Tensor Recurrence::all(const Tensor& h) const {
  if (!kept.defined()) return h.matmul(kernel);
  const int64_t units = kernel.size(0);
  const Tensor by_gate = kernel.reshape({units, gates, units}).transpose(0, 1);
  return at::bmm(h * kept, by_gate).transpose(0, 1).flatten(1);
}

Tensor Recurrence::one(const Tensor& h, int64_t gate) const {
  const Tensor part = kernel.chunk(gates, 1)[static_cast<size_t>(gate)];
  return (kept.defined() ? h * kept.select(0, gate) : h).matmul(part);
}

internal::LayerOperation Cell::operation(bool sequences, bool backwards) const {
  if (dropouts_.inputs > 0 || dropouts_.states > 0) return {.why_not = "it has dropout"};
  std::optional<internal::plan::Recurrent> known = planned();
  if (!known) return {.why_not = "plans know LSTM and GRU alone, with the usual activations"};
  known->sequences = sequences;
  known->backwards = backwards;
  return {.operations = {*known}, .parameters = {&kernel_, &recurrent_, &bias_}};
}

Run Cell::run(const Pass& pass) const {
  const auto kept = [&](const Shape& shape, double rate) {
    if (rate == 1) return at::zeros(shape, pass.sequences.options());
    const random::RandomGenerator generator = random::get_global_generator();
    return internal::kept_elements(generator, shape, rate, pass.sequences.options()) / (1 - rate);
  };
  const int64_t batch = pass.sequences.size(0);
  Tensor sequences = pass.sequences;
  if (pass.training && dropouts_.inputs > 0) {
    sequences = sequences * kept({batch, 1, sequences.size(2)}, dropouts_.inputs);
  }
  Recurrence recurrence{recurrent_.value(), Tensor(), sizes_.gates};
  if (pass.training && dropouts_.states > 0) {
    recurrence.kept = kept({sizes_.gates, batch, sizes_.units}, dropouts_.states);
  }
  if (!pass.mask.defined() && !recurrence.kept.defined()) {
    if (std::optional<Run> run = run_fused(sequences, pass.state)) return *std::move(run);
  }
  return run_steps(pass, sequences, recurrence);
}

Run Cell::run_steps(const Pass& pass, const Tensor& sequences, const Recurrence& recurrence) const {
  const Tensor inputs = plus(sequences.matmul(kernel_.value()), input_bias());
  const Tensor zeros = at::zeros_like(pass.state[0]);
  std::vector<Tensor> state = pass.state;
  std::vector<Tensor> outputs;
  for (int64_t i = 0; i < sequences.size(1); ++i) {
    std::vector<Tensor> next = step(inputs.select(1, i), state, recurrence);
    if (!pass.mask.defined()) {
      outputs.push_back(next[0]);
      state = std::move(next);
      continue;
    }
    const Tensor counts = pass.mask.select(1, i).unsqueeze(1);
    const bool from_zeros = pass.zeros_where_masked || outputs.empty();
    outputs.push_back(at::where(counts, next[0], from_zeros ? zeros : outputs.back()));
    for (size_t k = 0; k < state.size(); ++k) state[k] = at::where(counts, next[k], state[k]);
  }
  return {at::stack(outputs, 1), outputs.back(), state};
}

}  // namespace cohort::keras::layers
