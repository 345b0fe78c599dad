#include "cohort/keras/layers/base/segments.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <c10/util/SmallVector.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/function_ref.h"
#include "cohort/core/text.h"
#include "cohort/keras/base/logits.h"
#include "cohort/keras/base/masks.h"
#include "cohort/keras/layers/base/fusion.h"
#include "cohort/keras/layers/base/layer_state.h"
#include "cohort/keras/layers/base/operation.h"
#include "cohort/ops/plan/recorded.h"

namespace cohort::internal {
namespace {

using keras::CallOptions;
using keras::layers::Layer;
using plan::PlanCache;

LayerOperation operation_of(const Layer& layer, bool training = false) {
  return dynamic_cast<const DescribesOperation&>(layer).operation(training);
}

// The activation as plans know it; nullopt: they do not.
std::optional<plan::Activation> planned_activation(
    const keras::activations::Activation& activation) {
  using plan::Function;
  constexpr std::pair<std::string_view, Function> kKnown[] = {
      {"relu", Function::kRelu},         {"relu6", Function::kRelu6},
      {"elu", Function::kElu},           {"selu", Function::kSelu},
      {"tanh", Function::kTanh},         {"sigmoid", Function::kSigmoid},
      {"softplus", Function::kSoftplus}, {"gelu", Function::kGelu},
      {"swish", Function::kSwish},       {"silu", Function::kSwish}};
  if (!activation.is_named()) return std::nullopt;
  for (const auto& [name, function] : kKnown) {
    if (name == activation.name()) return plan::Activation{function};
  }
  return std::nullopt;
}

bool is_linear(const keras::activations::Activation& activation) {
  return activation.name() == "linear";
}

// What of a run's last layer is applied to the plan's result. Crossentropies look for the logits of
// a sigmoid, which activate_outputs remembers.
keras::activations::Activation activation_after(const Layer& last) {
  const keras::activations::Activation activation = operation_of(last).activation;
  return planned_activation(activation) && activation.name() != "sigmoid"
             ? keras::activations::Activation()
             : activation;
}

// Calls visit(operation, the layer's description) for each operation of a run.
void for_each_operation(std::span<Layer* const> layers, bool training,
                        FunctionRef<void(const plan::Operation&, const LayerOperation&)> visit) {
  for (const Layer* layer : layers) {
    const LayerOperation description = operation_of(*layer, training);
    for (const plan::Operation& operation : description.operations) visit(operation, description);
    const bool is_after = layer == layers.back() && !is_linear(activation_after(*layer));
    const std::optional<plan::Activation> activation = planned_activation(description.activation);
    if (activation && !is_after) visit(*activation, description);
  }
}

std::vector<plan::Operation> operations_of(std::span<Layer* const> layers, bool training) {
  std::vector<plan::Operation> operations;
  for_each_operation(layers, training, [&](const plan::Operation& operation, const auto&) {
    operations.push_back(operation);
  });
  return operations;
}

size_t count_parameters(const Layer& layer, bool training) {
  size_t count = 0;
  for (const plan::Operation& operation : operation_of(layer, training).operations) {
    count += plan::num_parameters(operation);
  }
  return count;
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

std::string explain_plans(const PlanCache& plans, const char* when) {
  std::string text;
  for (const PlanCache::Entry& entry : plans.entries()) {
    text += str("  ", shape_str(entry.input), when, entry.wants != 0 ? ", with gradients" : "");
    if (entry.compiled->plan == nullptr) {
      text += str(": layer by layer (", entry.compiled->why_not, ")\n");
      continue;
    }
    text += str(": ran ", entry.hits + 1, " times\n");
    for (const std::string& unit : entry.compiled->plan->describe()) {
      text += str("    ", unit, "\n");
    }
  }
  return text;
}

}  // namespace

std::string why_unplanned(const Layer& layer) {
  const auto* describes = dynamic_cast<const DescribesOperation*>(&layer);
  if (describes == nullptr) return "its class describes no operation";
  if (layer.has_activity_regularizer()) return "it has an activity regularizer";
  if (layer.dtype_policy() != float32) return str("its dtype is ", layer.dtype_policy().name());
  for (const bool training : {false, true}) {
    const LayerOperation operation = describes->operation(training);
    if (!operation.why_not.empty()) return operation.why_not;
    if (!operation.activation.is_named()) return "its activation is a function of the program";
    for (const plan::Operation& step : operation.operations) {
      if (std::string reason = plan::why_not(step); !reason.empty()) return reason;
    }
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
    : layers_(layers.begin(), layers.end()), activation_(activation_after(*layers.back())) {
  for (const Layer* layer : layers) {
    if (operation_of(*layer).depends_on_training) dependent_.push_back(layer);
  }
}

Segment::Mode::Mode(std::span<Layer* const> layers, bool training)
    : training(training), plans(operations_of(layers, training)) {
  for_each_operation(
      layers, training, [&](const plan::Operation& operation, const LayerOperation& description) {
        draws.resize(draws.size() + plan::num_parameters(operation), description.draw);
        const auto* normalization = std::get_if<plan::Normalization>(&operation);
        if (normalization != nullptr && normalization->by_batch) {
          receivers.push_back(description.receive);
        }
      });
}

Segment::Mode& Segment::mode_of(bool training) {
  uint64_t key = 0;
  if (training && !dependent_.empty()) {
    key = 1;
    for (const Layer* layer : dependent_) key = (key << 1) | (layer->trainable() ? 1u : 0u);
  }
  const std::lock_guard lock(mutex_);
  const auto found = modes_.find(key);
  if (found != modes_.end()) return found->second;
  return modes_.try_emplace(key, layers_, training && !dependent_.empty()).first->second;
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
    num_parameters += std::max(count_parameters(*layers[length], /*training=*/false),
                               count_parameters(*layers[length], /*training=*/true));
    for (const plan::Operation& step : operation.operations) {
      worth_it = worth_it || std::holds_alternative<plan::Convolution>(step);
    }
    if (num_parameters > PlanCache::kMostParameters) break;
    ++length;
    if (!is_linear(operation.activation) && !planned_activation(operation.activation)) break;
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
  Mode& mode = mode_of(options.training.value_or(false));
  if (!built && !visit_layers(input.sizes(), mode, options)) return Tensor();

  const bool recording = at::GradMode::is_enabled();

  PlanCache::Key key{input.sizes(), recording && input.requires_grad() ? 1u : 0u};
  const std::vector<Variable>* const variables = mode.variables(layers_);
  if (variables == nullptr) return Tensor();
  c10::SmallVector<Tensor, 16> parameters;
  auto variable = variables->begin();
  for (const auto& draw : mode.draws) {
    parameters.emplace_back();
    if (draw) continue;  // once its shape is known
    parameters.back() = (variable++)->value();
    if (!plan::is_plain(parameters.back())) return Tensor();
    if (recording && parameters.back().requires_grad()) {
      key.wants |= uint64_t{1} << parameters.size();
    }
  }

  std::shared_ptr<const plan::Compiled> compiled = mode.plans.find(key);
  if (compiled == nullptr) {
    if (!visit_layers(key.input, mode, options)) return Tensor();
    compiled = mode.plans.compile(key);
  }
  if (compiled->plan == nullptr) return Tensor();
  for (size_t i = 0; i < parameters.size(); ++i) {  // not every layer checks its input's features
    if (mode.draws[i]) continue;
    if (parameters[i].sizes() != compiled->plan->parameter_shape(i)) return Tensor();
  }
  for (size_t i = 0; i < parameters.size(); ++i) {  // last: what is drawn cannot be put back
    if (mode.draws[i]) parameters[i] = mode.draws[i](compiled->plan->parameter_shape(i));
  }
  std::vector<Tensor> statistics;
  const Tensor output = plan::run(compiled->plan, input, parameters, &statistics);
  for (size_t i = 0; i < statistics.size(); ++i) {
    mode.receivers[i](compiled->plan->normalized()[i], statistics[i]);
  }
  return activate_outputs(activation_, output);
}

const std::vector<Variable>* Segment::Mode::variables(std::span<Layer* const> layers) const {
  if (const std::vector<Variable>* known = found.get_if()) return known;
  std::vector<Variable> variables;
  for (const Layer* layer : layers) {
    for (const Variable* parameter : operation_of(*layer, training).parameters) {
      if (*parameter) variables.push_back(*parameter);
    }
  }
  const auto count =
      std::count_if(draws.begin(), draws.end(), [](const auto& draw) { return !draw; });
  if (std::ssize(variables) != count) return nullptr;
  return &found.get([&] { return std::move(variables); });
}

// Calls the layers around a computation that there is none of: they are built, check such an
// input, and learn what they give. False where an operation takes no such input; what is wrong
// with it the layers themselves say.
bool Segment::visit_layers(at::IntArrayRef input, const Mode& mode, const CallOptions& options) {
  plan::Shape shape = input.vec();
  for (Layer* layer : layers_) {
    plan::Shape next = shape;
    for (const plan::Operation& step : operation_of(*layer, mode.training).operations) {
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
  const std::lock_guard lock(mutex_);
  for (const auto& [key, mode] : modes_) {
    text += explain_plans(mode.plans, mode.training ? ", in training" : "");
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
