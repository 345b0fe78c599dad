#include "cohort/keras/layers/base/layer.h"

#include <ATen/ops/alias.h>
#include <c10/util/accumulate.h>
#include <cxxabi.h>

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <typeinfo>
#include <utility>

#include "cohort/core/libtorch_error.h"
#include "cohort/core/profiler/tracing.h"
#include "cohort/core/structure/device.h"
#include "cohort/core/text.h"
#include "cohort/core/threads/scratch.h"
#include "cohort/distribute/strategies/context.h"
#include "cohort/distribute/strategies/strategy.h"
#include "cohort/distribute/variables/autocast.h"
#include "cohort/distribute/variables/variable_creation.h"
#include "cohort/distribute/variables/variable_impl.h"
#include "cohort/keras/base/backend.h"
#include "cohort/keras/base/describe_leaves.h"
#include "cohort/keras/base/masks.h"
#include "cohort/keras/layers/base/layer_state.h"
#include "cohort/keras/metrics/reported_metrics.h"
#include "cohort/ops/gradient_tape.h"

namespace cohort {
namespace internal {
namespace {

// `inputs`, of which the first tensor has this mask. The caller's own tensor stays without.
Structure masked_inputs(const Structure& inputs, const Tensor& mask,
                        const keras::layers::Layer& layer) {
  bool is_first = true;
  return inputs.map([&](const Leaf& leaf) -> Leaf {
    if (!std::exchange(is_first, false)) return leaf;
    const bool fits = leaf.is_tensor() && mask.scalar_type() == at::kBool && mask.dim() == 2 &&
                      leaf.dim() >= 2 && mask.sizes() == leaf.tensor().sizes().slice(0, 2);
    if (fits) return with_mask(at::alias(leaf.tensor()), mask);
    throw InvalidArgumentError(str("layer '", layer.name(), "' was called with the mask ",
                                   describe(mask), " for ", describe_leaves(Structure(leaf)),
                                   "; a mask is bool, [batch, steps] as the input's first two "
                                   "dimensions"));
  });
}

// No size is negative, and all together are no more elements, of 16 bytes, than 64 bits can
// address.
bool is_countable(const keras::Shape& shape) {
  constexpr int64_t kMostElements = std::numeric_limits<int64_t>::max() / 16;
  int64_t count = 1;
  bool has_none = false;
  for (const int64_t size : shape) {
    if (size < 0) return false;
    has_none = has_none || size == 0;
    if (size > 0 && __builtin_mul_overflow(count, size, &count)) return false;
  }
  return has_none || count <= kMostElements;
}

}  // namespace

std::string unqualified_type_name(const std::type_info& type) {
  int status = 0;
  char* demangled = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);
  std::string name = status == 0 ? demangled : type.name();
  std::free(demangled);
  name = name.substr(0, name.find('<'));
  const size_t colon = name.rfind(':');
  return colon == std::string::npos ? name : name.substr(colon + 1);
}

std::shared_ptr<StrategyCore> strategy_of(const keras::layers::Layer& layer) {
  const LayerState& state = LayerState::of(layer);
  return state.strategy != nullptr ? state.strategy : distribute::get_strategy().core();
}

}  // namespace internal

namespace keras::layers {

using internal::str;

Layer::Layer(LayerOptions options) : Layer("", std::move(options)) {}

Layer::Layer(std::string class_name, LayerOptions options)
    : state_(std::make_unique<internal::LayerState>(*this, std::move(class_name),
                                                    std::move(options))) {}

Layer::~Layer() = default;

std::optional<Config> Layer::get_config() const { return std::nullopt; }

const std::string& Layer::class_name() const {
  return state_->class_name.get([&] { return internal::unqualified_type_name(typeid(*this)); });
}

const std::string& Layer::name() const {
  return state_->name.get([&] { return backend::unique_object_name(class_name()); });
}

const mixed_precision::Policy& Layer::dtype_policy() const { return state_->policy; }
DType Layer::compute_dtype() const { return state_->policy.compute_dtype(); }
DType Layer::variable_dtype() const { return state_->policy.variable_dtype(); }

Tensor Layer::in_compute_dtype(const Tensor& x) const {
  return internal::computable(x, compute_dtype());
}

bool Layer::built() const { return state_->build_once.done(); }

bool Layer::trainable() const { return state_->trainable; }

void Layer::set_trainable(bool trainable) {
  internal::Visited visited;
  state_->set_trainable(trainable, visited);
}

const List<Layer::Child>& Layer::children() const { return state_->children; }

bool Layer::has_activity_regularizer() const {
  return static_cast<bool>(state_->activity_regularizer);
}

std::optional<StructureSpec> Layer::output_spec() const {
  const StructureSpec* const spec = state_->output_spec.get_if();
  return spec == nullptr ? std::nullopt : std::make_optional(*spec);
}

void Layer::set_input_spec(InputSpec spec) { state_->input_spec = spec; }

InputSpec& Layer::input_spec() { return state_->input_spec; }

Tensor Layer::operator()(const Tensor& input, const CallOptions& options) {
  const Structure output = (*this)(Structure(input), options);
  if (!output.is_leaf()) {
    throw InvalidArgumentError(str("layer '", name(), "' returned ", output,
                                   ", not one tensor; call it with a Structure"));
  }
  return output.tensor();
}

Structure Layer::operator()(const Structure& inputs, const CallOptions& options) {
  if (options.mask.defined()) {
    const Structure masked = internal::masked_inputs(inputs, options.mask, *this);
    return (*this)(masked, CallOptions{.training = options.training});
  }
  const auto run = [&](const Structure& placed) {
    return state_->run(placed, options,
                       [&](const CallOptions& resolved) { return call(placed, resolved); });
  };
  const auto run_cast = [&](const Structure& placed) {
    return state_->needs_cast(placed) ? run(state_->cast(placed)) : run(placed);
  };
  return internal::has_gpus() ? run_cast(state_->beside_weights(inputs)) : run_cast(inputs);
}

void Layer::build(const std::vector<Shape>&) {}

Tensor Layer::call(const Tensor&, const CallOptions&) {
  throw UnimplementedError(
      str("layer '", name(), "' of class ", class_name(), " overrides neither form of call"));
}

Structure Layer::call(const Structure& inputs, const CallOptions& options) {
  if (!inputs.is_leaf()) {
    throw InvalidArgumentError(str("layer '", name(), "' takes one tensor, but got ", inputs));
  }
  return call(inputs.tensor(), options);
}

Variable Layer::add_weight(const std::string& name, const Shape& shape, WeightOptions options) {
  if (!internal::is_countable(shape)) {
    throw InvalidArgumentError(str("weight '", name, "' of layer '", this->name(),
                                   "' cannot have the shape ", internal::shape_str(shape)));
  }
  state_->check_name_is_free(name);
  const DType dtype = options.dtype.value_or(this->dtype());
  const distribute::VariableSpec spec{
      .shape = shape,
      .dtype = dtype,
      .options = {.name = str(this->name(), "/", name),
                  .trainable = options.trainable,
                  .synchronization = options.synchronization,
                  .aggregation = options.aggregation,
                  .constraint = options.constraint},
      .autocast = options.autocast && state_->casts_weights() && at::isFloatingType(dtype)};
  if (const auto* projection = spec.options.constraint.projection()) {
    optim::check_projection(*projection, shape, str(name, "' of layer '", this->name()));
  }
  const std::string what = str("weight '", name, "' of layer '", this->name(), "', of shape ",
                               internal::shape_str(shape));
  const Variable variable = internal::with_typed_errors(what.c_str(), [&] {
    return internal::create_own_variable(spec, options.initializer.for_variable(shape, dtype),
                                         pending_value(name, shape, dtype));
  });
  track(name, variable, std::move(options.regularizer));
  return variable;
}

void Layer::track(std::string name, const Variable& variable,
                  regularizers::Regularizer regularizer) {
  state_->check_name_is_free(name);
  state_->weights.push_back({name, variable, std::move(regularizer)});
  child_appeared(name, variable.impl());
}

void Layer::track(std::string name, Layer& member) {
  state_->track_child({std::move(name), &member, nullptr});
}

void Layer::pop_child() {
  state_->children.pop_back();
  state_->named_children.pop_back();
}

std::vector<train::TrackableChild> Layer::checkpoint_children() {
  std::vector<train::TrackableChild> children;
  for (const auto& weight : state_->weights) {
    children.push_back({weight.name, &weight.variable.impl()});
  }
  children.insert(children.end(), state_->named_children.begin(), state_->named_children.end());
  return children;
}

void Layer::add_loss(const Tensor& loss) {
  if (!loss.defined() || loss.dim() != 0) {
    throw InvalidArgumentError(
        str("layer '", name(), "': add_loss takes a scalar, but got ", internal::describe(loss)));
  }
  state_->warn_unless_tracked(internal::LayerState::Lost::kLosses);
  const bool has_rows = internal::is_tracing() || internal::LayerState::counts_in_metrics();
  // The mean of nothing is no number.
  const Tensor wide = internal::widened(loss);
  state_->losses.add(has_rows ? wide : wide.nan_to_num(0, 0, 0) * 0);
}

void Layer::add_metric(const Tensor& value, const std::string& name) {
  if (name.empty()) {
    throw InvalidArgumentError(
        str("layer '", this->name(),
            "': add_metric needs a name, as in add_metric(value, \"mean_activation\")"));
  }
  internal::check_log_name(name, str("layer '", this->name(), "': add_metric got"));
  if (!value.defined()) {
    throw InvalidArgumentError(str("layer '", this->name(),
                                   "': add_metric got an undefined value for ",
                                   internal::quoted(name)));
  }
  if (value.is_complex()) {
    throw InvalidArgumentError(str("layer '", this->name(), "': add_metric got ",
                                   internal::describe(value), " for ", internal::quoted(name),
                                   "; means are of real numbers: take its real part or abs()"));
  }
  state_->warn_unless_tracked(internal::LayerState::Lost::kMetrics);
  state_->added_mean(name).update_state(
      internal::LayerState::counts_in_metrics() ? value : value.detach().flatten().slice(0, 0, 0));
}

void Layer::reset_states() {
  for (const Child& child : children()) child.layer->reset_states();
}

void Layer::clear_losses() {
  internal::Visited visited;
  state_->clear_losses(visited);
}

List<Tensor> Layer::losses() const {
  internal::Scratch<Tensor, struct Losses> losses;
  internal::Visited visited;
  state_->collect_losses(*losses, visited);
  return losses.take();
}

List<Variable> Layer::trainable_variables() const {
  internal::Scratch<Variable, struct Variables> found;
  internal::Visited visited;
  state_->collect_variables(true, true, *found, visited);
  return state_->listed(found.take());
}

List<Variable> Layer::non_trainable_variables() const {
  internal::Scratch<Variable, struct Variables> found;
  internal::Visited visited;
  state_->collect_variables(true, false, *found, visited);
  return state_->listed(found.take());
}

List<Variable> Layer::variables() const {
  List<Variable>::Base found = trainable_variables();
  for (Variable& variable : non_trainable_variables()) found.push_back(std::move(variable));
  return state_->listed(std::move(found));
}

int64_t Layer::count_params() const {
  state_->check_has_weights("count_params");
  int64_t count = 0;
  for (const Variable& variable : variables()) count += c10::multiply_integers(variable.shape());
  return count;
}

List<Tensor> Layer::get_weights() const {
  if (!children().empty()) state_->check_has_weights("get_weights");
  const NoGradient no_gradient;
  List<Tensor>::Base values;
  for (const Variable& variable : variables()) values.push_back(variable.value().detach().clone());
  return state_->listed(std::move(values));
}

void Layer::set_weights(const std::vector<Tensor>& values) const {
  if (!children().empty()) state_->check_has_weights("set_weights");
  const List<Variable> all = variables();
  if (values.size() != all.size()) {
    throw InvalidArgumentError(str("layer '", name(), "' has ", all.size(),
                                   " variables, but set_weights got ", values.size(), " values",
                                   built() ? "" : "; " + state_->why_no_weights()));
  }
  for (size_t i = 0; i < all.size(); ++i) {
    const bool fits = values[i].defined() && values[i].sizes() == at::IntArrayRef(all[i].shape());
    if (fits) continue;
    throw InvalidArgumentError(str(
        "layer '", name(), "': set_weights got ", internal::describe(values[i]),
        " for the variable '", all[i].name(), "' of shape ", internal::shape_str(all[i].shape())));
  }
  for (size_t i = 0; i < all.size(); ++i) all[i].assign(values[i]);
}

}  // namespace keras::layers
}  // namespace cohort
