#include "cohort/keras/layers/layer.h"

#include <c10/util/Exception.h>
#include <c10/util/accumulate.h>
#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <typeinfo>
#include <utility>

#include "cohort/core/scratch.h"
#include "cohort/core/text.h"
#include "cohort/distribute/context.h"
#include "cohort/distribute/strategy.h"
#include "cohort/distribute/variable_impl.h"
#include "cohort/keras/backend.h"
#include "cohort/keras/layers/layer_handle.h"
#include "cohort/keras/layers/window.h"
#include "cohort/ops/gradient_tape.h"

namespace cohort {
namespace internal {
namespace {

// The layer call that the calling thread is in: inner calls inherit `training` from it.
struct CallFrame {
  bool training = false;
  const CallFrame* parent = nullptr;
};
thread_local const CallFrame* current_call = nullptr;

class CallGuard {
 public:
  explicit CallGuard(const keras::CallOptions& options)
      : frame_{options.training.value_or(current_call != nullptr && current_call->training),
               current_call} {
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

// "ns::Outer::MyLayer" -> "MyLayer".
std::string unqualified_type_name(const std::type_info& type) {
  int status = 0;
  char* demangled = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);
  std::string name = status == 0 ? demangled : type.name();
  std::free(demangled);
  name = name.substr(0, name.find('<'));
  const size_t colon = name.rfind(':');
  return colon == std::string::npos ? name : name.substr(colon + 1);
}

[[noreturn]] void throw_call_failed(const std::string& where, const Structure& inputs,
                                    const c10::Error& error) {
  const std::string message =
      str(where, " failed on ", describe_leaves(inputs), ": ", error.what_without_backtrace());
  if (message.find("allocate memory") != std::string::npos) throw ResourceExhaustedError(message);
  throw InvalidArgumentError(message);
}

// Specs of images [batch, height, width, channels], with another size.
StructureSpec with_image_size(const StructureSpec& specs, const keras::layers::Size2D& size) {
  return specs.map([&](const TensorSpec& spec) {
    keras::Shape shape = *spec.shape();
    shape[1] = size.height;
    shape[2] = size.width;
    return TensorSpec(shape, spec.dtype());
  });
}

}  // namespace

std::string describe_leaves(const Structure& inputs) {
  std::string text;
  inputs.for_each([&](const Leaf& leaf) {
    if (!text.empty()) text += ", ";
    text += leaf.is_tensor() ? describe(leaf.tensor()) : str("string ", shape_str(leaf.sizes()));
  });
  return text.empty() ? "no tensors" : text;
}

StructureSpec batch_spec_of(const Structure& values) {
  return StructureSpec::of(values).map([](const TensorSpec& spec) {
    return spec.shape()->empty() ? spec : spec.with_batch_dim(kUnknownDim);
  });
}

}  // namespace internal

namespace keras::layers {

using internal::str;

namespace {

std::optional<std::string> unless_empty(std::string text) {
  if (text.empty()) return std::nullopt;
  return text;
}

}  // namespace

Layer::Layer(LayerOptions options) : Layer("", std::move(options)) {}

Layer::Layer(std::string class_name, LayerOptions options)
    : name_(unless_empty(std::move(options.name))),
      class_name_(unless_empty(std::move(class_name))),
      dtype_(options.dtype.value_or(internal::keras_floatx())),
      trainable_(options.trainable),
      activity_regularizer_(std::move(options.activity_regularizer)),
      strategy_(distribute::has_strategy() ? distribute::get_strategy().core() : nullptr) {
  if (!at::isFloatingType(dtype_)) {
    const std::string* const given = name_.get_if();
    throw InvalidArgumentError(str("layer '", given ? *given : "", "': dtype ",
                                   internal::dtype_name(dtype_), " is not a floating one"));
  }
}

Layer::~Layer() = default;

const std::string& Layer::class_name() const {
  return class_name_.get([&] { return internal::unqualified_type_name(typeid(*this)); });
}

const std::string& Layer::name() const {
  return name_.get([&] { return backend::unique_object_name(class_name()); });
}

std::optional<StructureSpec> Layer::output_spec() const {
  const StructureSpec* const spec = output_spec_.get_if();
  return spec == nullptr ? std::nullopt : std::make_optional(*spec);
}

Tensor Layer::operator()(const Tensor& input, const CallOptions& options) {
  const Structure output = (*this)(Structure(input), options);
  if (!output.is_leaf()) {
    throw InvalidArgumentError(str("layer '", name(), "' returned ", output,
                                   ", not one tensor; call it with a Structure"));
  }
  return output.tensor();
}

Structure Layer::operator()(const Structure& inputs, const CallOptions& options) {
  return run(inputs, options, [&](const CallOptions& resolved) { return call(inputs, resolved); });
}

Structure Layer::run(const Structure& inputs, const CallOptions& options,
                     FunctionRef<Structure(const CallOptions&)> body, const Size2D* natural_size) {
  const internal::CallGuard guard(options);
  if (guard.outermost()) clear_losses();
  if (!built()) ensure_built(inputs);
  check_inputs(inputs);
  Structure outputs = [&] {
    try {
      return body(guard.options());
    } catch (const c10::Error& error) {
      internal::throw_call_failed(str("layer '", name(), "'"), inputs, error);
    }
  }();
  if (activity_regularizer_) add_activity_loss(outputs);
  output_spec_.get([&] {
    StructureSpec spec = internal::batch_spec_of(outputs);
    return natural_size ? internal::with_image_size(spec, *natural_size) : spec;
  });
  return outputs;
}

void Layer::ensure_built(const Structure& inputs) {
  // Called outside of any scope (evaluation, a first look at the shapes), it still gets the
  // variables of the scope that it was made in.
  std::optional<distribute::Scope> scope;
  if (strategy_ != nullptr && !distribute::has_strategy()) scope.emplace(strategy_);
  build_once_(str("layer '", name(), "'"), [&] {
    check_inputs(inputs);  // here, since building changes what is checked
    std::vector<Shape> shapes;
    inputs.for_each([&](const Leaf& leaf) {
      shapes.push_back(leaf.sizes());
      if (!shapes.back().empty()) shapes.back()[0] = kUnknownDim;
    });
    const size_t num_weights = weights_.size();
    const size_t num_children = children_.size();
    const size_t num_named_children = named_children_.size();
    const size_t num_lists = lists_.size();
    const InputSpec input_spec = input_spec_;
    try {
      build(shapes);
    } catch (...) {
      weights_.resize(num_weights);
      children_.resize(num_children);
      named_children_.resize(num_named_children);
      lists_.resize(num_lists);
      input_spec_ = input_spec;
      throw;
    }
  });
}

void Layer::check_inputs(const Structure& inputs) const {
  const auto fail = [&](const Leaf& leaf, const auto&... expected) {
    throw InvalidArgumentError(str("layer '", name(), "' expects an input ", expected...,
                                   ", but got ", internal::describe_leaves(Structure(leaf))));
  };
  const InputSpec& spec = input_spec_;
  inputs.for_each([&](const Leaf& leaf) {
    if (leaf.is_tensor() && !leaf.tensor().defined()) fail(leaf, "that is defined");
    if (spec.rank && leaf.dim() != *spec.rank) fail(leaf, "of rank ", *spec.rank);
    if (spec.min_rank && leaf.dim() < *spec.min_rank) {
      fail(leaf, "of rank ", *spec.min_rank, " or more");
    }
    if (spec.floating && !(leaf.is_tensor() && leaf.tensor().is_floating_point())) {
      fail(leaf, "of a floating dtype (a Rescaling layer converts images)");
    }
    const auto last_dim = [&] {
      return leaf.is_tensor() ? leaf.tensor().size(-1) : leaf.sizes().back();
    };
    if (spec.last_dim && (leaf.dim() == 0 || last_dim() != *spec.last_dim)) {
      fail(leaf, "whose last dimension is ", *spec.last_dim);
    }
  });
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
  for (const int64_t size : shape) {
    if (size < 0) {
      throw InvalidArgumentError(str("weight '", name, "' of layer '", this->name(),
                                     "' cannot have the shape ", internal::shape_str(shape)));
    }
  }
  const DType dtype = options.dtype.value_or(dtype_);
  Variable variable([&] { return options.initializer(shape, dtype); },
                    {.name = str(this->name(), "/", name),
                     .trainable = options.trainable,
                     .synchronization = options.synchronization,
                     .aggregation = options.aggregation});
  track(name, variable, std::move(options.regularizer));
  return variable;
}

void Layer::track(std::string name, const Variable& variable,
                  regularizers::Regularizer regularizer) {
  check_name_is_free(name);
  weights_.push_back({name, variable, std::move(regularizer)});
  child_appeared(name, variable.impl());
}

void Layer::track(std::string name, Layer& member) {
  track_child({std::move(name), &member, nullptr});
}

void Layer::track(std::string name, const LayerHandle& layer) {
  track_child({std::move(name), layer.get(), layer.pointer()});
}

void Layer::track_child(Child child) {
  check_name_is_free(child.name);
  named_children_.push_back({child.name, child.layer});
  children_.push_back(std::move(child));
  child_appeared(named_children_.back().name, *named_children_.back().object);
}

void Layer::track(const std::string& name, const std::vector<LayerHandle>& layers) {
  check_name_is_free(name);
  train::TrackableList& list = *lists_.emplace_back(std::make_unique<train::TrackableList>());
  named_children_.push_back({name, &list});
  for (const LayerHandle& layer : layers) {
    children_.push_back({str(name, "/", list.size()), layer.get(), layer.pointer()});
    list.add(*layer.get());
  }
  child_appeared(name, list);
}

void Layer::pop_child() {
  children_.pop_back();
  named_children_.pop_back();
}

void Layer::check_name_is_free(std::string_view name) const {
  const auto has_name = [&](const auto& tracked) { return tracked.name == name; };
  if (std::none_of(weights_.begin(), weights_.end(), has_name) &&
      std::none_of(named_children_.begin(), named_children_.end(), has_name)) {
    return;
  }
  throw InvalidArgumentError(str("layer '", this->name(), "' tracks ", internal::quoted(name),
                                 " already; what a layer tracks needs names of its own, by which "
                                 "checkpoints know it"));
}

std::vector<train::TrackableChild> Layer::checkpoint_children() {
  std::vector<train::TrackableChild> children;
  for (const Weight& weight : weights_) children.push_back({weight.name, &weight.variable.impl()});
  children.insert(children.end(), named_children_.begin(), named_children_.end());
  return children;
}

void Layer::add_loss(const Tensor& loss) {
  if (!loss.defined() || loss.dim() != 0) {
    throw InvalidArgumentError(
        str("layer '", name(), "': add_loss takes a scalar, but got ", internal::describe(loss)));
  }
  losses_.add(loss);
}

void Layer::add_activity_loss(const Structure& outputs) {
  outputs.for_each([&](const Leaf& leaf) {
    const Tensor& output = leaf.tensor();
    const Tensor loss = activity_regularizer_(output);
    const int64_t rows = output.dim() == 0 ? 1 : output.size(0);
    losses_.add(rows == 0 ? loss * 0 : loss / rows);
  });
}

void Layer::clear_losses() {
  Visited visited;
  clear_losses(visited);
}

void Layer::clear_losses(Visited& visited) {
  // What was never built has no losses, and may be getting its children on another replica now.
  if (!built() || !visited.insert(this)) return;
  losses_.clear();
  for (const Child& child : children_) child.layer->clear_losses(visited);
}

std::vector<Tensor> Layer::losses() const {
  internal::Scratch<Tensor, struct Losses> losses;
  Visited visited;
  collect_losses(*losses, visited);
  return losses.take();
}

void Layer::collect_losses(std::vector<Tensor>& losses, Visited& visited) const {
  if (!visited.insert(this)) return;
  for (Tensor& loss : losses_.get()) losses.push_back(std::move(loss));
  for (const Weight& weight : weights_) {
    if (weight.regularizer) losses.push_back(weight.regularizer(weight.variable.value()));
  }
  for (const Child& child : children_) child.layer->collect_losses(losses, visited);
}

void Layer::collect_variables(bool parent_trainable, bool want_trainable,
                              std::vector<Variable>& found, Visited& visited) const {
  if (!visited.insert(this)) return;
  const bool trainable = parent_trainable && trainable_;
  for (const Weight& weight : weights_) {
    const bool is_trainable = trainable && weight.variable.trainable();
    if (is_trainable == want_trainable && visited.insert(&weight.variable.impl())) {
      found.push_back(weight.variable);
    }
  }
  for (const Child& child : children_) {
    child.layer->collect_variables(trainable, want_trainable, found, visited);
  }
}

std::vector<Variable> Layer::trainable_variables() const {
  internal::Scratch<Variable, struct Variables> found;
  Visited visited;
  collect_variables(true, true, *found, visited);
  return found.take();
}

std::vector<Variable> Layer::non_trainable_variables() const {
  internal::Scratch<Variable, struct Variables> found;
  Visited visited;
  collect_variables(true, false, *found, visited);
  return found.take();
}

std::vector<Variable> Layer::variables() const {
  std::vector<Variable> found = trainable_variables();
  for (Variable& variable : non_trainable_variables()) found.push_back(std::move(variable));
  return found;
}

int64_t Layer::count_params() const {
  int64_t count = 0;
  for (const Variable& variable : variables()) count += c10::multiply_integers(variable.shape());
  return count;
}

std::vector<Tensor> Layer::get_weights() const {
  const NoGradient no_gradient;
  std::vector<Tensor> values;
  for (const Variable& variable : variables()) values.push_back(variable.value().detach().clone());
  return values;
}

void Layer::set_weights(const std::vector<Tensor>& values) const {
  const std::vector<Variable> all = variables();
  if (values.size() != all.size()) {
    throw InvalidArgumentError(str("layer '", name(), "' has ", all.size(),
                                   " variables, but set_weights got ", values.size(), " values"));
  }
  for (size_t i = 0; i < all.size(); ++i) all[i].assign(values[i]);
}

}  // namespace keras::layers
}  // namespace cohort
