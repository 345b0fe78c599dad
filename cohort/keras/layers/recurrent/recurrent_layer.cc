#include <ATen/ops/zeros.h>

#include "cohort/core/profiler/tracing.h"
#include "cohort/core/recording/step_recording.h"
#include "cohort/keras/base/describe_leaves.h"
#include "cohort/keras/base/masks.h"
#include "cohort/keras/layers/recurrent/cell.h"

namespace cohort::keras::layers {

using internal::str;

RecurrentLayer::RecurrentLayer(const char* class_name, LayerOptions layer_options,
                               std::shared_ptr<Cell> cell, const Options& options)
    : Layer(class_name, std::move(layer_options)), cell_(std::move(cell)), options_(options) {
  track("cell", LayerHandle(cell_));
}

std::optional<Config> RecurrentLayer::get_config() const {
  return internal::layer_config(
      *this, [this](internal::FieldWriter& field) { cell_->write_fields(field); });
}

internal::LayerOperation RecurrentLayer::operation(bool) const {
  if (options_.return_state) return {.why_not = "it returns its state"};
  if (options_.stateful) return {.why_not = "it goes on with the state of the batch before"};
  return cell_->operation(options_.return_sequences, options_.go_backwards);
}

// What does not fit is for `call` to refuse, which sees it.
void RecurrentLayer::build(const std::vector<Shape>& input_shapes) {
  if (!takes(input_shapes)) return;
  const Shape& sequences = input_shapes[0];
  (*cell_)(at::zeros({1}, dtype()).expand({1, sequences[1], sequences[2]}), {});
}

Structure RecurrentLayer::call(const Structure& inputs, const CallOptions& call_options) {
  std::vector<Tensor> tensors;
  inputs.for_each([&](const Leaf& leaf) { tensors.push_back(leaf.tensor()); });
  std::vector<Shape> shapes;
  for (const Tensor& tensor : tensors) shapes.push_back(tensor.sizes().vec());
  if (!takes(shapes)) {
    throw InvalidArgumentError(str("layer '", name(),
                                   "' takes [batch, steps, features] with one "
                                   "step or more, or a tuple of it and ",
                                   cell_->sizes().states, " initial states, but got ",
                                   internal::describe_leaves(inputs)));
  }
  const Tensor mask = internal::mask_of(tensors[0]);
  for (Tensor& tensor : tensors) tensor = in_compute_dtype(tensor);
  (*cell_)(tensors[0], call_options);  // where it did not fit before
  if (tensors[0].size(2) != cell_->features()) {
    throw InvalidArgumentError(str("layer '", name(), "' was built for ", cell_->features(),
                                   " features, but got ", internal::describe_leaves(inputs)));
  }
  Pass pass;
  pass.sequences = options_.go_backwards ? tensors[0].flip(1) : tensors[0];
  if (mask.defined()) pass.mask = options_.go_backwards ? mask.flip(1) : mask;
  pass.zeros_where_masked = zeros_where_masked_;
  pass.training = *call_options.training;
  pass.state.assign(tensors.begin() + 1, tensors.end());
  if (pass.state.empty()) pass.state = kept_state(pass.sequences.size(0));
  while (pass.state.size() < static_cast<size_t>(cell_->sizes().states)) {
    pass.state.push_back(
        at::zeros({pass.sequences.size(0), cell_->sizes().units}, pass.sequences.options()));
  }
  const Run run = cell_->run(pass);
  keep_state(run.state);
  const Tensor output =
      options_.return_sequences ? internal::with_mask(run.outputs, mask) : run.last;
  if (!options_.return_state) return output;
  std::vector<Structure> members = {output};
  members.insert(members.end(), run.state.begin(), run.state.end());
  return Structure::make_tuple(std::move(members));
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
  if (!options_.stateful || state[0].size(0) == 0 || internal::is_tracing()) return;
  if (internal::StepRecording* const recording = internal::StepRecording::current()) {
    recording->refuse(
        str("layer '", name(), "' is stateful: it keeps its state for the next step"));
  }
  std::vector<Tensor> kept;
  for (const Tensor& part : state) kept.push_back(part.detach());
  kept_.set(std::move(kept));
}

bool RecurrentLayer::takes(const std::vector<Shape>& shapes) const {
  const auto with_state = static_cast<size_t>(cell_->sizes().states + 1);
  return (shapes.size() == 1 || shapes.size() == with_state) && shapes[0].size() == 3 &&
         shapes[0][1] > 0;
}

}  // namespace cohort::keras::layers
