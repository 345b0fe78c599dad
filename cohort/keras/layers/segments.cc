#include "cohort/keras/layers/segments.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/keras/layers/fusion.h"
#include "cohort/keras/layers/layer_state.h"
#include "cohort/keras/layers/operation.h"
#include "cohort/keras/logits.h"
#include "cohort/keras/masks.h"
#include "cohort/ops/plan/recorded.h"

namespace cohort::internal {
namespace {

using keras::CallOptions;
using keras::layers::Layer;
using plan::PlanCache;

LayerOperation operation_of(const Layer& layer) {
  return dynamic_cast<const DescribesOperation&>(layer).operation();
}

std::vector<plan::Operation> operations_of(std::span<Layer* const> layers) {
  std::vector<plan::Operation> operations;
  for (const Layer* layer : layers) {
    for (plan::Operation& operation : operation_of(*layer).operations) {
      operations.push_back(std::move(operation));
    }
  }
  return operations;
}

bool has_activation(const LayerOperation& operation) {
  return operation.activation.name() != "linear";
}

bool is_recurrent(const LayerOperation& operation) {
  return operation.operations.size() == 1 &&
         std::holds_alternative<plan::Recurrent>(operation.operations[0]);
}

// Takes no memory, and stands for any tensor of such a shape.
Tensor placeholder(const plan::Shape& shape) { return at::zeros({1}, float32).expand(shape); }

std::string names_of(std::span<Layer* const> layers) {
  std::string names;
  for (const Layer* layer : layers) names += str(names.empty() ? "" : ", ", layer->name());
  return names;
}

}  // namespace

std::string why_unplanned(const Layer& layer) {
  const auto* describes = dynamic_cast<const DescribesOperation*>(&layer);
  if (describes == nullptr) return "its class describes no operation";
  if (layer.has_activity_regularizer()) return "it has an activity regularizer";
  if (layer.dtype() != float32) return str("its dtype is ", dtype_name(layer.dtype()));
  const LayerOperation operation = describes->operation();
  if (!operation.why_not.empty()) return operation.why_not;
  if (!operation.activation.is_named()) return "its activation is a function of the program";
  for (const plan::Operation& step : operation.operations) {
    if (std::string reason = plan::why_not(step); !reason.empty()) return reason;
  }
  return "";
}

std::string explain_unplanned(const Layer& layer) {
  const std::string reason = why_unplanned(layer);
  return str(layer.name(), ": by itself (", reason.empty() ? "no convolution is beside it" : reason,
             ")\n");
}

Structure run_layers(std::span<Layer* const> layers, const Structure& inputs,
                     const CallOptions& options) {
  Structure values = inputs;
  for (std::span<Layer* const> rest = layers; !rest.empty();) {
    const size_t length = fused_chain(rest);
    values =
        length > 0 ? call_chain(rest.first(length), values, options) : (*rest[0])(values, options);
    rest = rest.subspan(std::max<size_t>(length, 1));
  }
  return values;
}

Segment::Segment(std::span<Layer* const> layers)
    : layers_(layers.begin(), layers.end()),
      activation_(operation_of(*layers.back()).activation),
      plans_(operations_of(layers)) {
  for (const plan::Operation& operation : operations_of(layers)) {
    num_parameters_ += plan::num_parameters(operation);
  }
}

// Products alone are as fast in libtorch. A recurrent layer divides a batch by other measures than
// its neighbours, and pays alone.
size_t Segment::length(std::span<Layer* const> layers) {
  bool worth_it = false;
  size_t length = 0;
  size_t num_parameters = 0;
  while (length < layers.size() && why_unplanned(*layers[length]).empty()) {
    const LayerOperation operation = operation_of(*layers[length]);
    if (is_recurrent(operation)) {
      if (length == 0) return 1;
      break;
    }
    for (const plan::Operation& step : operation.operations) {
      num_parameters += plan::num_parameters(step);
      worth_it = worth_it || std::holds_alternative<plan::Convolution>(step);
    }
    if (num_parameters > PlanCache::kMostParameters) break;
    ++length;
    if (has_activation(operation)) break;
  }
  return worth_it ? length : 0;
}

Structure Segment::operator()(const Structure& inputs, const CallOptions& options) {
  if (inputs.is_leaf() && inputs.leaf().is_tensor() && inputs.tensor().defined() &&
      inputs.tensor().is_cpu() && inputs.tensor().layout() == at::kStrided &&
      inputs.tensor().scalar_type() == float32 && !mask_of(inputs.tensor()).defined()) {
    const Tensor outputs = planned(inputs.tensor().contiguous(), options);
    if (outputs.defined()) return outputs;
  }
  return run_layers(layers_, inputs, options);
}

// Undefined where there is no plan.
Tensor Segment::planned(const Tensor& input, const CallOptions& options) {
  if (!plan::is_plain(input) || input.dim() == 0 || input.size(0) == 0) return Tensor();
  const bool built = std::all_of(layers_.begin(), layers_.end(),
                                 [](const Layer* layer) { return layer->built(); });
  if (!built && !visit_layers(input.sizes(), options)) return Tensor();

  const bool recording = at::GradMode::is_enabled();
  PlanCache::Key key{input.sizes(), recording && input.requires_grad() ? 1u : 0u};
  const std::vector<Variable>* const variables = this->parameters();
  if (variables == nullptr) return Tensor();
  std::vector<Tensor> parameters;
  parameters.reserve(variables->size());
  for (const Variable& variable : *variables) {
    parameters.push_back(variable.value());
    if (!plan::is_plain(parameters.back())) return Tensor();
    if (recording && parameters.back().requires_grad()) {
      key.wants |= uint64_t{1} << parameters.size();
    }
  }

  std::shared_ptr<const plan::Compiled> compiled = plans_.find(key);
  if (compiled == nullptr) {
    if (!visit_layers(key.input, options)) return Tensor();
    compiled = plans_.compile(key);
  }
  if (compiled->plan == nullptr) return Tensor();
  for (size_t i = 0; i < parameters.size(); ++i) {  // not every layer checks its input's features
    if (parameters[i].sizes() != compiled->plan->parameter_shape(i)) return Tensor();
  }
  const Tensor output = plan::run(compiled->plan, input, parameters);
  return activate_outputs(activation_, output);
}

const std::vector<Variable>* Segment::parameters() const {
  if (const std::vector<Variable>* known = parameters_.get_if()) return known;
  std::vector<Variable> parameters;
  for (const Layer* layer : layers_) {
    for (const Variable* parameter : operation_of(*layer).parameters) {
      if (*parameter) parameters.push_back(*parameter);
    }
  }
  if (parameters.size() != num_parameters_) return nullptr;
  return &parameters_.get([&] { return std::move(parameters); });
}

// Calls the layers around a computation that there is none of: they are built, check such an
// input, and learn what they give. False where an operation takes no such input; what is wrong
// with it the layers themselves say.
bool Segment::visit_layers(at::IntArrayRef input, const CallOptions& options) {
  plan::Shape shape = input.vec();
  for (Layer* layer : layers_) {
    plan::Shape next = shape;
    for (const plan::Operation& step : operation_of(*layer).operations) {
      next = plan::result_shape(step, next);
      if (next.empty()) return false;
    }
    layer->state_->run(Structure(placeholder(shape)), options,
                       [&](const CallOptions&) { return Structure(placeholder(next)); });
    shape = std::move(next);
  }
  return true;
}

std::string Segment::explain() const {
  std::string text = str(names_of(layers_), ": one plan\n");
  const std::vector<PlanCache::Entry> entries = plans_.entries();
  for (const PlanCache::Entry& entry : entries) {
    text += str("  ", shape_str(entry.input), entry.wants != 0 ? ", with gradients" : "");
    if (entry.compiled->plan == nullptr) {
      text += str(": layer by layer (", entry.compiled->why_not, ")\n");
      continue;
    }
    text += str(": ran ", entry.hits + 1, " times\n");
    for (const std::string& unit : entry.compiled->plan->describe())
      text += str("    ", unit, "\n");
  }
  return text;
}

Segments::Segments(std::span<Layer* const> layers) {
  while (!layers.empty()) {
    const size_t length = Segment::length(layers);
    if (length > 0) {
      const std::span<Layer* const> run = layers.first(length);
      runs_.push_back({{run.begin(), run.end()}, std::make_unique<Segment>(run)});
    } else {
      if (runs_.empty() || runs_.back().segment != nullptr) runs_.emplace_back();
      runs_.back().layers.push_back(layers[0]);
    }
    layers = layers.subspan(std::max<size_t>(length, 1));
  }
}

Structure Segments::operator()(const Structure& inputs, const CallOptions& options) const {
  Structure values = inputs;
  for (const Run& run : runs_) {
    values = run.segment != nullptr ? (*run.segment)(values, options)
                                    : run_layers(run.layers, values, options);
  }
  return values;
}

std::string Segments::explain() const {
  std::string text;
  for (const Run& run : runs_) {
    if (run.segment != nullptr) {
      text += run.segment->explain();
      continue;
    }
    for (const Layer* layer : run.layers) text += explain_unplanned(*layer);
  }
  return text;
}

}  // namespace cohort::internal
