#include "cohort/keras/layers/recurrent/recurrent_layer.h"

#include "cohort/core/profiler/tracing.h"
#include "cohort/core/recording/step_recording.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/strategies/context.h"
#include "cohort/distribute/strategies/strategy.h"
#include "cohort/keras/base/describe_leaves.h"
#include "cohort/keras/base/masks.h"

namespace cohort::keras::layers {

using internal::str;

RecurrentLayer::RecurrentLayer(const char* class_name, LayerOptions layer_options,
                               std::shared_ptr<AbstractRNNCell> cell, const Options& options)
    : Layer(class_name, std::move(layer_options)), cell_(std::move(cell)), options_(options) {
  track("cell", LayerHandle(cell_));
}

internal::LayerOperation RecurrentLayer::operation(bool) const {
  if (options_.return_state) return {.why_not = "it returns its state"};
  if (options_.stateful) return {.why_not = "it goes on with the state of the batch before"};
  const auto* cell = dynamic_cast<const Cell*>(cell_.get());
  if (cell == nullptr || options_.time_major) {
    return {.why_not = "plans know the cells of Keras alone, over [batch, steps, features]"};
  }
  return cell->operation(options_.return_sequences, options_.go_backwards);
}

// What does not fit is for `call` to refuse, which sees it.
void RecurrentLayer::build(const std::vector<Shape>& input_shapes) {
  const bool moves =
      distribute::has_strategy() && distribute::get_strategy().core()->transaction() != nullptr;
  if (options_.stateful && moves) {
    throw UnimplementedError(str(
        "layer '", name(), "' is stateful: the state of each replica's last batch would be lost ",
        "with its worker; make it with stateful = false under an elastic strategy"));
  }
  if (!takes(input_shapes)) return;
  Shape step(input_shapes[0].begin() + 1, input_shapes[0].end());
  step[0] = 1;
  build_cell(*cell_, step);
}

Structure RecurrentLayer::call(const Structure& inputs, const CallOptions& call_options) {
  std::vector<Tensor> tensors;
  std::vector<Shape> shapes;
  inputs.for_each([&](const Leaf& leaf) {
    tensors.push_back(leaf.tensor());
    shapes.push_back(leaf.sizes());
  });
  if (!takes(shapes)) {
    throw InvalidArgumentError(str("layer '", name(),
                                   "' takes [batch, steps, features] with one "
                                   "step or more, or a tuple of it and ",
                                   cell_->state_size().size(), " initial states, but got ",
                                   internal::describe_leaves(inputs)));
  }
  const Tensor mask = internal::mask_of(tensors[0]);
  for (Tensor& tensor : tensors) tensor = in_compute_dtype(tensor);
  if (options_.time_major) tensors[0] = tensors[0].transpose(0, 1);
  Shape step(tensors[0].sizes().begin() + 1, tensors[0].sizes().end());
  step[0] = 1;
  build_cell(*cell_, step);  // where the shapes did not fit before
  const auto* known = dynamic_cast<const Cell*>(cell_.get());
  if (known != nullptr && tensors[0].size(2) != known->features()) {
    throw InvalidArgumentError(str("layer '", name(), "' was built for ", known->features(),
                                   " features, but got ", internal::describe_leaves(inputs)));
  }
  const Run run = run_cell(*cell_, pass_over(tensors, mask, *call_options.training));
  keep_state(run.state);
  const Tensor outputs = options_.time_major ? run.outputs.transpose(0, 1) : run.outputs;
  const Tensor output = options_.return_sequences ? internal::with_mask(outputs, mask) : run.last;
  if (!options_.return_state) return output;
  std::vector<Structure> members = {output};
  members.insert(members.end(), run.state.begin(), run.state.end());
  return Structure::make_tuple(std::move(members));
}

// tensors: sequences [batch, steps, ..], and perhaps states.
Pass RecurrentLayer::pass_over(const std::vector<Tensor>& tensors, const Tensor& mask,
                               bool training) const {
  Pass pass;
  pass.sequences = options_.go_backwards ? tensors[0].flip(1) : tensors[0];
  if (mask.defined()) {
    const Tensor by_row = options_.time_major ? mask.transpose(0, 1) : mask;
    pass.mask = options_.go_backwards ? by_row.flip(1) : by_row;
  }
  pass.zeros_where_masked = options_.zeros_where_masked;
  pass.training = training;
  pass.state.assign(tensors.begin() + 1, tensors.end());
  if (pass.state.empty()) pass.state = kept_state(pass.sequences.size(0));
  if (pass.state.empty()) pass.state = cell_->get_initial_state(pass.sequences.select(1, 0));
  return pass;
}

std::vector<Tensor> RecurrentLayer::kept_state(int64_t rows) const {
  if (!options_.stateful || rows == 0 || internal::is_tracing()) return {};
  std::vector<Tensor> kept = kept_.get();
  if (kept.empty() || kept[0].size(0) == rows) return kept;
  throw InvalidArgumentError(
      str("layer '", name(), "' is stateful and got a batch of ", rows, " rows after one of ",
          kept[0].size(0),
          ", whose sequences it goes on with; give batches of one size (batch "
          "with drop_remainder), or call reset_states() between them"));
}

void RecurrentLayer::keep_state(const std::vector<Tensor>& state) {
  const bool keeps = options_.stateful && !state.empty() && state[0].size(0) > 0;
  if (!keeps || internal::is_tracing()) return;
  if (internal::StepRecording* const recording = internal::StepRecording::current()) {
    recording->refuse(
        str("layer '", name(), "' is stateful: it keeps its state for the next step"));
  }
  std::vector<Tensor> kept;
  for (const Tensor& part : state) kept.push_back(part.detach());
  kept_.set(std::move(kept));
}

bool RecurrentLayer::takes(const std::vector<Shape>& shapes) const {
  const size_t with_state = cell_->state_size().size() + 1;
  if (shapes.size() != 1 && shapes.size() != with_state) return false;
  const bool is_known = dynamic_cast<const Cell*>(cell_.get()) != nullptr;
  const bool has_rank = is_known ? shapes[0].size() == 3 : shapes[0].size() >= 3;
  return has_rank && shapes[0][options_.time_major ? 0 : 1] != 0;
}

}  // namespace cohort::keras::layers
