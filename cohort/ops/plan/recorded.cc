#include "cohort/ops/plan/recorded.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <c10/util/SmallVector.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

namespace cohort::internal::plan {
namespace {

using torch::autograd::Edge;
using torch::autograd::Node;
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

// The gradients of a pass that is recorded itself: libtorch computes them all at once, and units hand
// them on as a token. They lead to the plan's result, so what the nodes keep must not hold them.
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

// Inputs: the gradient of the plan's result, or a token. Outputs: the gradient of the plan's input,
// or the token for the unit before; then those of the unit's parameters.
class UnitNode final : public Node {
 public:
  UnitNode(std::shared_ptr<Recording> recording, size_t unit)
      : recording_(std::move(recording)), unit_(unit) {}

  std::string name() const override { return "Plan"; }

  variable_list apply(variable_list&& inputs) override {
    const std::lock_guard lock(mutex_);
    TORCH_CHECK(recording_ != nullptr, torch::autograd::ERR_BACKWARD_TWICE);
    if (!inputs[0].defined()) return variable_list(num_outputs());
    if (is_last() && at::GradMode::is_enabled()) {
      return share_of(DerivedGradients::make_token(derive(inputs[0])));
    }
    Plan::BackwardPass* const pass =
        is_last() ? &recording_->begin_pass() : recording_->find_pass(inputs[0]);
    if (pass == nullptr) return share_of(inputs[0]);
    return compute(*pass, inputs[0]);
  }

  void release_variables() override {
    const std::lock_guard lock(mutex_);
    recording_.reset();
  }

 private:
  bool is_last() const { return unit_ + 1 == recording_->plan().num_units(); }
  bool is_first() const { return unit_ == 0; }

  variable_list compute(Plan::BackwardPass& pass, const Tensor& gradient) {
    const Plan& plan = recording_->plan();
    const Tensor input = is_first() ? recording_->input() : Tensor();
    const Tensor output_gradient = is_last() ? gradient.contiguous() : Tensor();
    const size_t first = plan.first_parameter(unit_);
    const size_t count = plan.num_parameters(unit_);
    variable_list results(1 + count);
    // Of a bias no gradient needs the value.
    Tensor kernels[kMostParameters];
    const float* parameters[kMostParameters] = {};
    for (size_t i = 0; i < plan.num_kernels(unit_); ++i) {
      kernels[i] = recording_->parameter(first + i);
      parameters[i] = kernels[i].data_ptr<float>();
    }
    float* gradients[kMostParameters] = {};
    for (size_t i = 0; i < count; ++i) {
      if (!task_should_compute_output(1 + i)) continue;
      results[1 + i] = at::empty(plan.parameter_shape(first + i), at::kFloat);
      gradients[i] = results[1 + i].data_ptr<float>();
    }
    const bool goes_on = task_should_compute_output(0);
    if (is_first() && goes_on) results[0] = at::empty(input.sizes(), at::kFloat);
    plan.backward(
        recording_->forward(), pass, unit_, input.defined() ? input.data_ptr<float>() : nullptr,
        parameters, output_gradient.defined() ? output_gradient.data_ptr<float>() : nullptr,
        gradients, results[0].defined() ? results[0].data_ptr<float>() : nullptr, goes_on);
    if (!is_first() && goes_on) {
      results[0] = pass.token;
    } else {
      recording_->end_pass(pass);
    }
    return results;
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
  variable_list share_of(const Tensor& token) const {
    const variable_list& gradients = DerivedGradients::of(token);
    const Plan& plan = recording_->plan();
    variable_list results{is_first() ? gradients[0] : token};
    for (size_t i = 0; i < plan.num_parameters(unit_); ++i) {
      results.push_back(gradients[1 + plan.first_parameter(unit_) + i]);
    }
    return results;
  }

  std::shared_ptr<Recording> recording_;  // nullptr once released
  const size_t unit_;
};

Edge edge_of(const Tensor& tensor, bool wanted) {
  return wanted && tensor.requires_grad() ? torch::autograd::impl::gradient_edge(tensor) : Edge();
}

void record(const std::shared_ptr<Recording>& recording, const Tensor& input,
            at::TensorList parameters, Tensor& output) {
  static const Tensor token = at::zeros({}, at::kFloat);
  const Plan& plan = recording->plan();
  Edge before = edge_of(input, plan.request().wants_input);
  for (size_t u = 0; u < plan.num_units(); ++u) {
    if (!plan.wants_gradient(u)) continue;
    const std::shared_ptr<Node> node(new UnitNode(recording, u), torch::autograd::deleteNode);
    torch::autograd::edge_list edges;
    edges.reserve(1 + plan.num_parameters(u));
    edges.push_back(std::move(before));
    for (size_t i = 0; i < plan.num_parameters(u); ++i) {
      const size_t parameter = plan.first_parameter(u) + i;
      edges.push_back(edge_of(parameters[parameter], plan.request().wants_parameters[parameter]));
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
  const auto recording = std::make_shared<Recording>(plan, input, parameters);
  compute(recording->forward());
  record(recording, input, parameters, output);
  return output;
}

}  // namespace cohort::internal::plan
