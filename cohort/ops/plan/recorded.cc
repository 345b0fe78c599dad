#include "cohort/ops/plan/recorded.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <c10/util/SmallVector.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <mutex>
#include <utility>

#include "cohort/core/cpu/intra_op_parallel.h"
#include "cohort/ops/graph_node.h"
#include "cohort/ops/plan/kernels.h"

namespace cohort::internal::plan {
namespace {

constexpr int64_t kPenaltyGrain = 32 << 10;  // elements of a gradient for each thread, at least

using torch::autograd::Edge;
using torch::autograd::SavedVariable;
using torch::autograd::variable_list;

// What the nodes of one forward pass share. libtorch sees a node for each unit, so that it hands
// over each parameter's gradient as soon as there is one; what flows between them is a token, a
// zero by which a unit finds the memory of its backward pass.
class Recording {
 public:
  Recording(std::shared_ptr<const Plan> plan, const Tensor& input, at::TensorList parameters)
      : plan_(std::move(plan)), forward_(plan_->take_forward()), input_(input, false) {
    parameters_.reserve(parameters.size());
    for (const Tensor& parameter : parameters) parameters_.emplace_back(parameter, false);
  }
  ~Recording() {
    for (auto& pass : passes_) plan_->give_back(std::move(pass));
    plan_->give_back(std::move(forward_));
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  const Plan& plan() const { return *plan_; }
  Plan::ForwardPass& forward() const { return *forward_; }
  // Errors: c10::Error (changed in place since).
  Tensor input() const { return input_.unpack(); }
  Tensor parameter(size_t i) const { return parameters_[i].unpack(); }

  Plan::BackwardPass& begin_pass() {
    std::unique_ptr<Plan::BackwardPass> pass = plan_->take_backward();
    const std::lock_guard lock(mutex_);
    return *passes_.emplace_back(std::move(pass));
  }
  // nullptr where the token is that of a derived pass.
  Plan::BackwardPass* find_pass(const Tensor& token) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(passes_.begin(), passes_.end(),
                                    [&](const auto& pass) { return pass->token.is_same(token); });
    return found == passes_.end() ? nullptr : found->get();
  }
  void end_pass(const Plan::BackwardPass& ended) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(passes_.begin(), passes_.end(),
                                    [&](const auto& pass) { return pass.get() == &ended; });
    plan_->give_back(std::move(*found));
    passes_.erase(found);
  }

 private:
  const std::shared_ptr<const Plan> plan_;
  std::unique_ptr<Plan::ForwardPass> forward_;
  SavedVariable input_;
  c10::SmallVector<SavedVariable, 8> parameters_;
  std::mutex mutex_;
  c10::SmallVector<std::unique_ptr<Plan::BackwardPass>, 2> passes_;  // under way
};

// The gradients of a pass that is recorded itself: libtorch computes them all at once, and units
// hand them on as a token. They lead to the plan's result, so what the nodes keep must not hold
// them.
struct DerivedGradients {
  static Tensor make_token(variable_list gradients) {
    auto made = std::make_unique<DerivedGradients>();
    made->gradients = std::move(gradients);
    DerivedGradients* const derived = made.release();
    return at::for_blob(&derived->zero, {})
        .options(at::kFloat)
        .context(derived, &destroy)
        .make_tensor();
  }
  static const variable_list& of(const Tensor& token) {
    const auto* derived = token.storage().data_ptr().cast_context<DerivedGradients>(&destroy);
    TORCH_INTERNAL_ASSERT(derived != nullptr, "a plan's token of no pass");
    return derived->gradients;
  }
  static void destroy(void* derived) { delete static_cast<DerivedGradients*>(derived); }

  float zero = 0;
  variable_list gradients;
};

// Inputs: the gradient of the plan's result, or a token; then those of penalties on the unit's
// parameters. Outputs: if it passes on, the gradient of the plan's input, or the token for the unit
// before; then those of the unit's parameters.
class UnitNode final : public GraphNode {
 public:
  UnitNode(std::shared_ptr<Recording> recording, size_t unit, bool passes_on, bool takes_penalties)
      : recording_(std::move(recording)),
        unit_(unit),
        passes_on_(passes_on),
        takes_penalties_(takes_penalties) {}

  std::string name() const override { return "Plan"; }
  bool takes_penalties() const { return takes_penalties_; }

  variable_list apply(variable_list&& inputs) override {
    const std::lock_guard lock(mutex_);
    const Tensor gradient = std::move(inputs[0]);
    const c10::SmallVector<Tensor, 1> of_penalties(std::make_move_iterator(inputs.begin() + 1),
                                                   std::make_move_iterator(inputs.end()));
    variable_list results = undefined(std::move(inputs), num_outputs());
    is_of_penalties_ = !gradient.defined();
    if (gradient.defined()) add_gradients(gradient, results);
    for (size_t i = 0; i < of_penalties.size(); ++i) {
      if (of_penalties[i].defined()) add_gradient(penalties_[i], of_penalties[i], results);
    }
    return results;
  }

  // Makes `penalty`, which is factor * sum(x^2) with x the unit's parameter, a result of this node.
  // False where a backward pass has been over it.
  bool record_penalty(size_t parameter, const Tensor& x, double factor, Tensor& penalty) {
    const std::lock_guard lock(mutex_);
    if (recording_ == nullptr) return false;
    penalties_.push_back({parameter, SavedVariable(x, /*is_output=*/false), factor});
    torch::autograd::set_history(penalty, NodePointers<UnitNode>::from(this));
    return true;
  }

  void release_resources() override {
    recording_.reset();
    penalties_.clear();
    GraphNode::release_resources();
  }

  // A backward pass over penalties alone gives up nothing: for whoever asks for gradients of the
  // result later they are no part of its graph.
  void release_variables() override {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(is_of_penalties_, false)) recording_.reset();
  }

 private:
  bool is_last() const { return unit_ + 1 == recording_->plan().num_units(); }
  bool is_first() const { return unit_ == 0; }

  // Keeps what its gradient needs, also when the pass has been given up.
  struct Penalty {
    size_t parameter;
    SavedVariable x;
    double factor;
  };

  // The number of the output that is the gradient of a parameter.
  size_t output_of(size_t parameter) const { return (passes_on_ ? 1 : 0) + parameter; }

  // results: undefined so far.
  void add_gradients(const Tensor& input, variable_list& results) {
    TORCH_CHECK(recording_ != nullptr, torch::autograd::ERR_BACKWARD_TWICE);
    if (is_last() && at::GradMode::is_enabled()) {
      return take_share(DerivedGradients::make_token(derive(input)), results);
    }
    Plan::BackwardPass* const pass =
        is_last() ? &recording_->begin_pass() : recording_->find_pass(input);
    pass == nullptr ? take_share(input, results) : compute(*pass, input, results);
  }

  void add_gradient(const Penalty& penalty, const Tensor& gradient, variable_list& results) const {
    const size_t output = output_of(penalty.parameter);
    if (!task_should_compute_output(output)) return;
    Tensor& result = results[output];
    const Tensor x = penalty.x.unpack();
    if (at::GradMode::is_enabled() || gradient.scalar_type() != at::kFloat) {
      const Tensor share = x * (gradient * (2 * penalty.factor));
      result = result.defined() ? result + share : share;
      return;
    }
    const float factor = number_of(gradient) * static_cast<float>(2 * penalty.factor);
    const bool adds = result.defined();
    if (!adds) result = at::empty(x.sizes(), at::kFloat);
    const float* const from = x.data_ptr<float>();
    float* const to = result.data_ptr<float>();
    intra_op_parallel_for(0, x.numel(), kPenaltyGrain, [&](int64_t begin, int64_t end) {
      (adds ? add_scaled : scale)(from + begin, factor, end - begin, to + begin);
    });
  }

  void compute(Plan::BackwardPass& pass, const Tensor& gradient, variable_list& results) {
    const Plan& plan = recording_->plan();
    const Tensor input = is_first() ? recording_->input() : Tensor();
    const Tensor output_gradient = is_last() ? gradient.contiguous() : Tensor();
    const size_t first = plan.first_parameter(unit_);
    const size_t count = plan.num_parameters(unit_);
    // Kernels alone: no gradient needs the value of a bias.
    Tensor kernels[kMostParameters];
    const float* parameters[kMostParameters] = {};
    for (size_t i = 0; i < plan.num_kernels(unit_); ++i) {
      kernels[i] = recording_->parameter(first + i);
      parameters[i] = kernels[i].data_ptr<float>();
    }
    float* gradients[kMostParameters] = {};
    for (size_t i = 0; i < count; ++i) {
      if (!task_should_compute_output(output_of(i))) continue;
      Tensor& result = results[output_of(i)];
      result = at::empty(plan.parameter_shape(first + i), at::kFloat);
      gradients[i] = result.data_ptr<float>();
    }
    const bool goes_on = passes_on_ && task_should_compute_output(0);
    float* input_gradient = nullptr;
    if (is_first() && goes_on) {
      results[0] = at::empty(input.sizes(), at::kFloat);
      input_gradient = results[0].data_ptr<float>();
    }
    plan.backward(recording_->forward(), pass, unit_,
                  input.defined() ? input.data_ptr<float>() : nullptr, parameters,
                  output_gradient.defined() ? output_gradient.data_ptr<float>() : nullptr,
                  gradients, input_gradient, goes_on);
    if (!is_first() && goes_on) {
      results[0] = pass.token;
    } else {
      recording_->end_pass(pass);
    }
  }

  // All gradients of the plan as libtorch computes and records them: of what it would have given
  // itself.
  variable_list derive(const Tensor& gradient) const {
    const Plan& plan = recording_->plan();
    // Views, since one tensor may be several parameters.
    const auto source = [](const Tensor& tensor) {
      return tensor.requires_grad() ? tensor.view_as(tensor) : tensor;
    };
    variable_list sources{source(recording_->input())};
    std::vector<Tensor> parameters;
    for (size_t i = 0; i < plan.request().wants_parameters.size(); ++i) {
      parameters.push_back(source(recording_->parameter(i)));
      sources.push_back(parameters.back());
    }
    const Tensor output = evaluate(plan.request().operations, sources[0], parameters);
    variable_list wanted;
    for (const Tensor& tensor : sources) {
      if (tensor.requires_grad()) wanted.push_back(tensor);
    }
    const variable_list found =
        torch::autograd::grad({output}, wanted, {gradient}, /*retain_graph=*/true,
                              /*create_graph=*/true, /*allow_unused=*/true);
    variable_list gradients(sources.size());
    size_t next = 0;
    for (size_t i = 0; i < sources.size(); ++i) {
      if (sources[i].requires_grad()) gradients[i] = found[next++];
    }
    return gradients;
  }

  // This unit's of all gradients.
  void take_share(const Tensor& token, variable_list& results) const {
    const variable_list& gradients = DerivedGradients::of(token);
    const Plan& plan = recording_->plan();
    if (passes_on_) results[0] = is_first() ? gradients[0] : token;
    for (size_t i = 0; i < plan.num_parameters(unit_); ++i) {
      results[output_of(i)] = gradients[1 + plan.first_parameter(unit_) + i];
    }
  }

  std::shared_ptr<Recording> recording_;  // nullptr once released
  const size_t unit_;
  const bool passes_on_;  // to the plan's input, or to units before
  const bool takes_penalties_;
  c10::SmallVector<Penalty, 1> penalties_;
  bool is_of_penalties_ = false;  // the backward pass under way
};

// The node that gives the gradient of a parameter which this thread's latest passes read.
struct Reader {
  const c10::TensorImpl* parameter;
  uint32_t version;
  WeakNodePtr<UnitNode> node;
  size_t place;  // among the unit's parameters
};
std::vector<Reader>& readers() {
  thread_local std::vector<Reader> readers;
  return readers;
}

void remember(const Tensor& parameter, const NodePtr<UnitNode>& node, size_t place) {
  const c10::TensorImpl* const read = parameter.unsafeGetTensorImpl();
  std::erase_if(readers(), [&](const Reader& reader) {
    return reader.parameter == read || reader.node.expired();
  });
  readers().push_back(
      {read, read->version_counter().current_version(), WeakNodePtr<UnitNode>(node), place});
}

// Whether penalties may be results of a plan with this input. A gradient of penalties alone is none
// for what is before the plan: units and leaves leave it undefined, but libtorch's Function makes
// zeros of it, as if what it was computed from were connected with the penalty.
bool may_take_penalties(const Tensor& input, const Edge& before) {
  if (!before.is_valid() || input.is_leaf()) return true;
  const auto* const unit = dynamic_cast<const UnitNode*>(before.function.get());
  return unit != nullptr && unit->takes_penalties();
}

void record(const std::shared_ptr<Recording>& recording, const Tensor& input,
            at::TensorList parameters, Tensor& output) {
  static const Tensor token = at::zeros({}, at::kFloat);
  const Plan& plan = recording->plan();
  Edge before = plan.request().wants_input ? edge_of(input) : Edge();
  const bool takes_penalties = may_take_penalties(input, before);
  for (size_t u = 0; u < plan.num_units(); ++u) {
    if (!plan.wants_gradient(u)) continue;
    const bool passes_on = before.is_valid();
    const NodePtr<UnitNode> node = make_node<UnitNode>(recording, u, passes_on, takes_penalties);
    torch::autograd::edge_list edges = take_edges();
    edges.reserve(1 + plan.num_parameters(u));
    if (passes_on) edges.push_back(std::move(before));
    for (size_t i = 0; i < plan.num_parameters(u); ++i) {
      const size_t parameter = plan.first_parameter(u) + i;
      edges.push_back(plan.request().wants_parameters[parameter] ? edge_of(parameters[parameter])
                                                                 : Edge());
      if (takes_penalties && edges.back().is_valid()) remember(parameters[parameter], node, i);
    }
    node->set_next_edges(std::move(edges));
    if (u + 1 == plan.num_units()) {
      torch::autograd::set_history(output, node);
    } else {
      before = Edge(node, node->add_input_metadata(token));
    }
  }
}

std::vector<Tensor> statistics_of(const Plan& plan, const Plan::ForwardPass& pass) {
  std::vector<Tensor> all;
  const std::vector<const float*> found = plan.statistics(pass);
  for (size_t i = 0; i < found.size(); ++i) {
    all.push_back(at::empty({2, plan.normalized()[i].back()}, at::kFloat));
    std::copy_n(found[i], all.back().numel(), all.back().data_ptr<float>());
  }
  return all;
}

}  // namespace

bool is_plain(const Tensor& tensor) {
  return tensor.defined() && tensor.is_cpu() && tensor.layout() == at::kStrided &&
         tensor.scalar_type() == at::kFloat && tensor.is_contiguous() && !tensor.is_conj() &&
         !tensor.is_neg();
}

Tensor run(const std::shared_ptr<const Plan>& plan, const Tensor& input, at::TensorList parameters,
           std::vector<Tensor>* statistics) {
  c10::SmallVector<const float*, 16> elements;
  for (const Tensor& parameter : parameters) elements.push_back(parameter.data_ptr<float>());
  Tensor output = at::empty(plan->output(), at::kFloat);
  const auto compute = [&](Plan::ForwardPass& pass) {
    plan->forward(pass, input.data_ptr<float>(), elements.data(), output.data_ptr<float>());
    if (statistics != nullptr) *statistics = statistics_of(*plan, pass);
  };
  if (!plan->request().records) {
    std::unique_ptr<Plan::ForwardPass> pass = plan->take_forward();
    compute(*pass);
    plan->give_back(std::move(pass));
    return output;
  }
  const auto recording =
      std::allocate_shared<Recording>(KeptAllocator<Recording>(), plan, input, parameters);
  compute(recording->forward());
  record(recording, input, parameters, output);
  return output;
}

bool record_penalty(const Tensor& x, double factor, Tensor& penalty) {
  // The node of a leaf keeps it alive, so that no other tensor stands at its address.
  if (!is_plain(x) || !x.is_leaf()) return false;
  const c10::TensorImpl* const parameter = x.unsafeGetTensorImpl();
  for (const Reader& reader : readers()) {
    if (reader.parameter != parameter) continue;
    const NodePtr<UnitNode> node = reader.node.lock();
    return node != nullptr && reader.version == parameter->version_counter().current_version() &&
           node->record_penalty(reader.place, x, factor, penalty);
  }
  return false;
}

}  // namespace cohort::internal::plan
