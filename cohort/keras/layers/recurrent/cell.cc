#include "cohort/keras/layers/recurrent/cell.h"

#include <ATen/ops/bmm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <utility>

#include "cohort/core/function_ref.h"
#include "cohort/keras/layers/base/layer_state.h"

namespace cohort::keras::layers {
namespace {

struct Stepped {
  Tensor output;
  std::vector<Tensor> state;
};

// Calls step(i, state) for each step, and carries the state over those that count.
Run take_steps(const Pass& pass,
               FunctionRef<Stepped(int64_t i, const std::vector<Tensor>& state)> step) {
  // counts: [batch], bool.
  const auto chosen = [](const Tensor& counts, const Tensor& value, const Tensor& otherwise) {
    Shape sizes(static_cast<size_t>(value.dim()), 1);
    sizes[0] = counts.size(0);
    return at::where(counts.reshape(sizes), value, otherwise);
  };
  std::vector<Tensor> state = pass.state;
  std::vector<Tensor> outputs;
  for (int64_t i = 0; i < pass.sequences.size(1); ++i) {
    Stepped next = step(i, state);
    if (!pass.mask.defined()) {
      outputs.push_back(std::move(next.output));
      state = std::move(next.state);
      continue;
    }
    const Tensor counts = pass.mask.select(1, i);
    const bool from_zeros = pass.zeros_where_masked || outputs.empty();
    const Tensor before = from_zeros ? at::zeros_like(next.output) : outputs.back();
    outputs.push_back(chosen(counts, next.output, before));
    for (size_t k = 0; k < state.size(); ++k) state[k] = chosen(counts, next.state[k], state[k]);
  }
  return {at::stack(outputs, 1), outputs.back(), state};
}

}  // namespace

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
  return take_steps(pass, [&](int64_t i, const std::vector<Tensor>& state) -> Stepped {
    std::vector<Tensor> next = advance(inputs.select(1, i), state, recurrence);
    Tensor output = next[0];
    return {std::move(output), std::move(next)};
  });
}

Cell::Step Cell::step(const Tensor& inputs, const std::vector<Tensor>& states,
                      const CallOptions& options) {
  if (inputs.dim() != 2 || inputs.size(1) != features()) {
    throw InvalidArgumentError(internal::str("cell '", name(), "' was built for [batch, ",
                                             features(), "], but got ",
                                             internal::describe(inputs)));
  }
  Pass pass;
  pass.sequences = inputs.unsqueeze(1);
  pass.state = states;
  pass.training = *options.training;
  Run made = run(pass);
  return {made.last, std::move(made.state)};
}

Run run_cell(AbstractRNNCell& cell, const Pass& pass) {
  if (const auto* runs = dynamic_cast<const RunsSequences*>(&cell)) return runs->run(pass);
  return take_steps(pass, [&](int64_t i, const std::vector<Tensor>& state) -> Stepped {
    std::vector<Structure> members = {pass.sequences.select(1, i)};
    members.insert(members.end(), state.begin(), state.end());
    const Structure made =
        cell(Structure::make_tuple(std::move(members)), {.training = pass.training});
    Stepped next{made[0].tensor(), {}};
    for (size_t k = 1; k < made.size(); ++k) next.state.push_back(made[k].tensor());
    return next;
  });
}

void build_cell(AbstractRNNCell& cell, const Shape& inputs) {
  if (cell.built()) return;
  const auto example = [&](Shape shape) -> Structure {
    return at::zeros({1}, cell.compute_dtype()).expand(shape);
  };
  std::vector<Structure> members = {example(inputs)};
  for (Shape shape : cell.state_size()) {
    shape.insert(shape.begin(), inputs[0]);
    members.push_back(example(std::move(shape)));
  }
  internal::LayerState::of(cell).build_for(Structure::make_tuple(std::move(members)));
}

}  // namespace cohort::keras::layers
