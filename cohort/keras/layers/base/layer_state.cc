#include "cohort/keras/layers/base/layer_state.h"

#include <array>
#include <optional>
#include <utility>

#include "cohort/core/libtorch_error.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/profiler/tracing.h"
#include "cohort/core/text.h"
#include "cohort/distribute/strategies/context.h"
#include "cohort/distribute/strategies/strategy.h"
#include "cohort/distribute/variables/autocast.h"
#include "cohort/distribute/variables/local_variable.h"
#include "cohort/distribute/variables/variable_impl.h"
#include "cohort/keras/base/backend.h"
#include "cohort/keras/base/describe_leaves.h"
#include "cohort/keras/base/masks.h"
#include "cohort/keras/layers/base/placement.h"
#include "cohort/keras/metrics/reported_metrics.h"

namespace cohort::internal {

using keras::CallOptions;
using keras::Shape;

namespace {

// The layer call that the calling thread is in: inner calls inherit `training` from it.
struct CallFrame {
  const LayerState* layer = nullptr;
  bool training = false;
  bool said = false;  // whether anyone has said so, or it is what calls are by default
  const Structure& batch;  // the inputs of the outermost call
  const CallFrame* parent = nullptr;
};
thread_local const CallFrame* current_call = nullptr;
thread_local bool calls_stay_with_inputs = false;

// Whether the first tensor has any.
bool has_rows(const Structure& inputs) {
  std::optional<bool> rows;
  inputs.for_each([&](const Leaf& leaf) {
    if (rows || (leaf.is_tensor() && !leaf.tensor().defined())) return;
    rows = leaf.dim() == 0 || (leaf.is_tensor() ? leaf.tensor().size(0) : leaf.sizes().front()) > 0;
  });
  return rows.value_or(true);
}

// What a layer hands on without having been told says nothing.
bool is_said(const std::optional<bool>& training) {
  if (current_call == nullptr) return training.has_value();
  return current_call->said || (training && *training != current_call->training);
}

class CallGuard {
 public:
  CallGuard(const LayerState& layer, const Structure& inputs, const keras::CallOptions& options)
      : frame_{&layer, options.training.value_or(current_call != nullptr && current_call->training),
               is_said(options.training),
               current_call == nullptr ? inputs : current_call->batch, current_call} {
    if (!frame_.said && layer.trains_by_default) frame_.training = true;
    current_call = &frame_;
  }
  ~CallGuard() { current_call = frame_.parent; }
  CallGuard(const CallGuard&) = delete;
  CallGuard& operator=(const CallGuard&) = delete;

  bool outermost() const { return frame_.parent == nullptr; }
  keras::CallOptions options() const { return {.training = frame_.training}; }

 private:
  CallFrame frame_;
};

// StructureSpec::of with dimension 0 of every leaf unknown.
StructureSpec batch_spec_of(const Structure& values) {
  return StructureSpec::of(values).map([](const TensorSpec& spec) {
    return spec.shape()->empty() ? spec : spec.with_batch_dim(kUnknownDim);
  });
}

void check_outputs(const keras::layers::Layer& layer, const Structure& outputs) {
  outputs.for_each([&](const Leaf& leaf) {
    if (leaf.is_strings() || leaf.tensor().defined()) return;
    throw InvalidArgumentError(str("layer '", layer.name(), "' (", layer.class_name(),
                                   ") gave an undefined tensor: its call returned ",
                                   describe_leaves(outputs)));
  });
}

std::optional<std::string> unless_empty(std::string text) {
  if (text.empty()) return std::nullopt;
  return text;
}

}  // namespace

CallsStayWithInputs::CallsStayWithInputs() : outer_(std::exchange(calls_stay_with_inputs, true)) {}

CallsStayWithInputs::~CallsStayWithInputs() { calls_stay_with_inputs = outer_; }

LayerState::LayerState(Layer& layer, std::string class_name, keras::layers::LayerOptions options)
    : layer(layer),
      name(unless_empty(std::move(options.name))),
      class_name(unless_empty(std::move(class_name))),
      policy(options.dtype ? *options.dtype : keras::mixed_precision::global_policy()),
      autocast(options.autocast),
      trainable(options.trainable),
      activity_regularizer(std::move(options.activity_regularizer)),
      strategy(distribute::has_strategy() ? distribute::get_strategy().core() : nullptr) {
  if (!at::isFloatingType(policy.compute_dtype())) {
    throw InvalidArgumentError(str("layer '", name.get_if() ? *name.get_if() : "", "': dtype ",
                                   policy.name(), " is not a floating one"));
  }
}

Structure LayerState::run(const Structure& inputs, const CallOptions& options,
                          FunctionRef<Structure(const CallOptions&)> body) {
  const CallGuard guard(*this, inputs, options);
  if (guard.outermost()) layer.clear_losses();
  if (!build_once.done()) ensure_built(inputs);
  check_inputs(inputs);
  Structure outputs = [&] {
    try {
      const ScopedAutocast autocast(policy.compute_dtype());
      return as_computed(body(guard.options()));
    } catch (const c10::Error& error) {
      throw_libtorch_error(error,
                           str("layer '", layer.name(), "' failed on ", describe_leaves(inputs)));
    }
  }();
  check_outputs(layer, outputs);
  if (activity_regularizer) add_activity_loss(outputs);
  output_spec.get([&] { return batch_spec_of(outputs); });
  return outputs;
}

Structure LayerState::beside_weights(const Structure& inputs) const {
  if (is_in_step() || calls_stay_with_inputs) return inputs;
  // While the layer is not built, another thread may be making its weights.
  const auto made = build_once.done() ? layer.weights() : keras::List<Variable>();
  if (made.empty()) return copied_to_device(inputs, first_device(*strategy_of(layer)));
  const VariableImpl& first = made[0].impl();
  return first.is_local() ? copied_to_device(inputs, first.local().component(0).device()) : inputs;
}

bool LayerState::needs_cast(const Structure& inputs) const {
  if (!autocast) return false;
  const DType dtype = policy.compute_dtype();
  bool needed = false;
  inputs.for_each([&](const Leaf& leaf) {
    if (needed || !leaf.is_tensor() || !leaf.tensor().defined()) return;
    const Tensor& tensor = leaf.tensor();
    const bool is_right = tensor.scalar_type() == dtype && dtype != DType::Half;
    needed = !is_right && tensor.is_floating_point();
  });
  return needed;
}

Structure LayerState::cast(const Structure& inputs) const {
  return inputs.map([&](const Leaf& leaf) -> Leaf {
    const bool is_floating =
        leaf.is_tensor() && leaf.tensor().defined() && leaf.tensor().is_floating_point();
    if (!is_floating) return leaf;
    return keep_mask(leaf.tensor(), computable(leaf.tensor(), policy.compute_dtype()));
  });
}

// CPUs do not compute in float16: a layer in another one's call hands on what that can compute
// with, float32 with float16's values. A layer of layers leaves what those have made.
Structure LayerState::as_computed(const Structure& outputs) const {
  const DType dtype = policy.compute_dtype();
  if (dtype != DType::Half || !autocast || !children.empty()) return outputs;
  const CallFrame* const caller = current_call->parent;
  const bool goes_on = caller != nullptr && caller->layer->autocast;
  return outputs.map([&](const Leaf& leaf) -> Leaf {
    if (!leaf.is_tensor() || !leaf.tensor().defined()) return leaf;
    const Tensor& output = leaf.tensor();
    const bool rounds = goes_on && output.is_floating_point();
    return keep_mask(output,
                     rounds ? computable(output, dtype) : internal::as_computed(output, dtype));
  });
}

void LayerState::ensure_built(const Structure& inputs) {
  // Called outside of any scope (evaluation, a first look at the shapes), it still gets the
  // variables of the scope that it was made in.
  std::optional<distribute::Scope> scope;
  if (strategy != nullptr && !distribute::has_strategy()) scope.emplace(strategy);
  build_once(str("layer '", layer.name(), "'"), [&] {
    build(inputs);
    if (!weights.empty() || !children.empty()) warn_unless_tracked(Lost::kVariables);
  });
}

// The caller's children may not be complete: whether any layer at all tracks this one says enough.
void LayerState::warn_unless_tracked(Lost lost) {
  const CallFrame* const caller = current_call == nullptr ? nullptr : current_call->parent;
  if (tracked || caller == nullptr || current_call->layer != this) return;
  const unsigned bit = 1U << static_cast<unsigned>(lost);
  if ((warned_of_.fetch_or(bit) & bit) != 0) return;
  constexpr std::array<const char*, 3> kLost = {
      "its variables are neither trained nor saved with the model",
      "the losses that it adds are no part of the model's",
      "fit and evaluate do not report the metrics that it adds"};
  const Layer& by = caller->layer->layer;
  log_warning("layer ", quoted(layer.name()), " (", layer.class_name(), ") is called by ",
              quoted(by.name()), ", but no layer tracks it: ", kLost[static_cast<size_t>(lost)],
              ". Call track(\"name\", layer) in the constructor of ", by.class_name());
}

void LayerState::build(const Structure& inputs) {
  check_inputs(inputs);  // here, since building changes what is checked
  std::vector<Shape> shapes;
  inputs.for_each([&](const Leaf& leaf) {
    shapes.push_back(leaf.sizes());
    if (!shapes.back().empty()) shapes.back()[0] = kUnknownDim;
  });
  const size_t num_weights = weights.size();
  const size_t num_children = children.size();
  const size_t num_named_children = named_children.size();
  const size_t num_lists = lists.size();
  const keras::layers::InputSpec spec_before = input_spec;
  try {
    const Tracing for_real(false);  // what a layer is built with lasts
    const ScopedAutocast in_own_dtype(std::nullopt);
    layer.build(shapes);
  } catch (...) {
    weights.resize(num_weights);
    children.resize(num_children);
    named_children.resize(num_named_children);
    lists.resize(num_lists);
    input_spec = spec_before;
    throw;
  }
}

void LayerState::check_inputs(const Structure& inputs) const {
  const auto fail = [&](const Leaf& leaf, const auto&... expected) {
    throw InvalidArgumentError(str("layer '", layer.name(), "' expects an input ", expected...,
                                   ", but got ", describe_leaves(Structure(leaf))));
  };
  const keras::layers::InputSpec& spec = input_spec;
  const auto unlike_rank = [&](const Leaf& leaf, int64_t rank, const char* more) {
    const char* hint = leaf.dim() + 1 == rank
                           ? " (where that of the batch is missing: call .batch(n) on a dataset, "
                             "or give one example as a batch of one)"
                           : "";
    fail(leaf, "of rank ", rank, more, hint);
  };
  inputs.for_each([&](const Leaf& leaf) {
    if (leaf.is_tensor() && !leaf.tensor().defined()) fail(leaf, "that is defined");
    if (spec.rank && leaf.dim() != *spec.rank) unlike_rank(leaf, *spec.rank, "");
    if (spec.min_rank && leaf.dim() < *spec.min_rank) {
      unlike_rank(leaf, *spec.min_rank, " or more");
    }
    if (spec.floating && !(leaf.is_tensor() && leaf.tensor().is_floating_point())) {
      fail(leaf, "of a floating dtype (a Rescaling layer converts images)");
    }
    for (size_t i = 0; i < spec.window.size(); ++i) {
      if (leaf.tensor().size(static_cast<int64_t>(i) + 1) >= spec.window[i]) continue;
      fail(leaf, "whose sizes from the second on are at least ", shape_str(spec.window),
           ", its window (padding = \"same\" adds what is missing)");
    }
    const auto last_dim = [&] {
      return leaf.is_tensor() ? leaf.tensor().size(-1) : leaf.sizes().back();
    };
    if (spec.last_dim && (leaf.dim() == 0 || last_dim() != *spec.last_dim)) {
      fail(leaf, "whose last dimension is ", *spec.last_dim);
    }
    for (const auto& [axis, size] : spec.axes) {
      if (leaf.sizes()[static_cast<size_t>(axis)] == size) continue;
      fail(leaf, "whose dimension ", axis, " (counted from 0) is ", size);
    }
  });
}

void LayerState::take_name(const std::string& wanted) {
  if (wanted != layer.name() && !wanted.empty()) {
    if (tracked || has_taken_name) {
      throw InvalidArgumentError(str("what makes it gave the layer ", quoted(layer.name()),
                                     ", which is in use already; make a new layer each time"));
    }
    name.set(wanted);
  }
  has_taken_name = true;
}

void LayerState::check_name_is_free(std::string_view name) const {
  const auto has_name = [&](const auto& tracked) { return tracked.name == name; };
  if (std::none_of(weights.begin(), weights.end(), has_name) &&
      std::none_of(named_children.begin(), named_children.end(), has_name)) {
    return;
  }
  throw InvalidArgumentError(str("layer '", layer.name(), "' tracks ", quoted(name),
                                 " already; what a layer tracks needs names of its own, by which "
                                 "checkpoints know it"));
}

void LayerState::track_child(Layer::Child child) {
  check_name_is_free(child.name);
  adopt(*child.layer);
  named_children.push_back({child.name, child.layer});
  children.push_back(std::move(child));
  layer.child_appeared(named_children.back().name, *named_children.back().object);
}

void LayerState::adopt(Layer& child) {
  LayerState& its = of(child);
  its.tracked = true;
  if (const auto reported = reported_.lock()) {
    Visited visited;
    its.report_means_to(reported, visited);
  }
}

void LayerState::report_means_to(const std::shared_ptr<ReportedMetrics>& reported,
                                 Visited& visited) {
  if (!visited.insert(this)) return;
  reported_ = reported;
  for (const Layer::Child& child : children) of(*child.layer).report_means_to(reported, visited);
}

void LayerState::add_activity_loss(const Structure& outputs) {
  warn_unless_tracked(Lost::kLosses);
  outputs.for_each([&](const Leaf& leaf) {
    const Tensor& output = leaf.tensor();
    const Tensor loss = activity_regularizer(widened(output));
    const int64_t rows = output.dim() == 0 ? 1 : output.size(0);
    losses.add(rows == 0 ? loss * 0 : loss / rows);
  });
}

void LayerState::set_trainable(bool wanted, Visited& visited) {
  if (!visited.insert(this)) return;
  trainable = wanted;
  for (const Layer::Child& child : children) child.layer->state_->set_trainable(wanted, visited);
}

void LayerState::clear_losses(Visited& visited) {
  // What was never built has no losses, and may be getting its children on another replica now.
  if (!build_once.done() || !visited.insert(this)) return;
  losses.clear();
  for (const Layer::Child& child : children) child.layer->state_->clear_losses(visited);
}

void LayerState::collect_losses(std::vector<Tensor>& found, Visited& visited) const {
  if (!visited.insert(this)) return;
  for (Tensor& loss : losses.get()) found.push_back(std::move(loss));
  const ScopedAutocast in_own_dtype(std::nullopt);
  for (const Weight& weight : weights) {
    if (weight.regularizer) found.push_back(weight.regularizer(weight.variable.value()));
  }
  for (const Layer::Child& child : children) child.layer->state_->collect_losses(found, visited);
}

bool LayerState::counts_in_metrics() {
  return !is_tracing() && (current_call == nullptr || has_rows(current_call->batch));
}

keras::metrics::Mean LayerState::added_mean(const std::string& name) {
  const std::lock_guard lock(means_mutex_);
  for (const keras::metrics::Mean& mean : means_) {
    if (mean.name() == name) return mean;
  }
  std::optional<distribute::Scope> scope;
  if (strategy != nullptr && !distribute::has_strategy()) scope.emplace(strategy);
  const keras::metrics::Mean made(name);
  if (const auto reported = reported_.lock()) reported->appeared(name, made);
  return means_.emplace_back(made);
}

void LayerState::for_each_layer(FunctionRef<void(const Layer&)> visit, Visited& visited) const {
  if (!visited.insert(this)) return;
  visit(layer);
  for (const Layer::Child& child : children) child.layer->state_->for_each_layer(visit, visited);
}

void LayerState::collect_metrics(std::vector<AddedMetric>& found, Visited& visited) const {
  if (!visited.insert(this)) return;
  {
    const std::lock_guard lock(means_mutex_);
    for (const keras::metrics::Mean& mean : means_) found.push_back({mean, &layer});
  }
  for (const Layer::Child& child : children) child.layer->state_->collect_metrics(found, visited);
}

std::string LayerState::why_no_weights() const {
  return str(
      "layer '", layer.name(),
      "' is not built yet, so it has still to make its weights: call it on a batch first, or "
      "begin its model with a keras::Input");
}

bool LayerState::awaits_weights() const {
  if (build_once.done() || !weights.empty()) return false;
  // What a lookup layer learns is no weight to Keras's count_params, and is there without a build.
  if (dynamic_cast<const VocabularyKeeper*>(&layer) != nullptr) return false;
  return children.empty() || std::any_of(children.begin(), children.end(), [](const auto& child) {
           return child.layer->state_->awaits_weights();
         });
}

void LayerState::check_has_weights(const char* what) const {
  if (awaits_weights()) throw FailedPreconditionError(str(what, ": ", why_no_weights()));
}

void LayerState::collect_variables(bool parent_trainable, bool want_trainable,
                                   std::vector<Variable>& found, Visited& visited) const {
  if (!visited.insert(this)) return;
  const bool all_trainable = parent_trainable && trainable;
  for (const Weight& weight : weights) {
    const bool is_trainable = all_trainable && weight.variable.trainable();
    if (is_trainable == want_trainable && visited.insert(&weight.variable.impl())) {
      found.push_back(weight.variable);
    }
  }
  for (const Layer::Child& child : children) {
    child.layer->state_->collect_variables(all_trainable, want_trainable, found, visited);
  }
}

bool has_weights(const keras::layers::Layer& layer) {
  if (!layer.variables().empty()) return true;
  const auto* keeper = dynamic_cast<const VocabularyKeeper*>(&layer);
  if (keeper != nullptr && keeper->keeps_weights()) return true;
  const auto& children = layer.children();
  return std::any_of(children.begin(), children.end(),
                     [](const auto& child) { return has_weights(*child.layer); });
}

}  // namespace cohort::internal
