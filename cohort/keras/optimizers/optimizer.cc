#include "cohort/keras/optimizers/optimizer.h"

#include "cohort/keras/base/config_json.h"
#include "cohort/keras/optimizers/optimizer_state.h"
#include "cohort/keras/optimizers/scaled_optimizer.h"
#include "cohort/ops/gradient_tape.h"

namespace cohort::internal {

OptimizerState& OptimizerState::of(const keras::optimizers::Optimizer& optimizer) {
  return *optimizer.state_;
}

std::shared_ptr<OptimizerState> OptimizerState::shared(
    const keras::optimizers::Optimizer& optimizer) {
  return optimizer.state_.pointer();
}

ScaledOptimizer* scaled_optimizer(const keras::optimizers::Optimizer& optimizer) {
  return optimizer.scaled_.get();
}

keras::optimizers::Optimizer without_scale(const keras::optimizers::Optimizer& optimizer) {
  keras::optimizers::Optimizer inner = optimizer;
  inner.scaled_ = nullptr;
  return inner;
}

}  // namespace cohort::internal

namespace cohort::keras::optimizers {

Optimizer::Optimizer(std::string name, std::unique_ptr<const optim::UpdateRule> rule,
                     LearningRate learning_rate, const CommonOptions& options)
    : state_(std::make_shared<internal::OptimizerState>(std::move(name), std::move(rule),
                                                        std::move(learning_rate), options)) {}

void Optimizer::apply_gradients(const GradientsAndVariables& gradients,
                                const ApplyOptions& options) const {
  scaled_ == nullptr ? state_->apply(gradients, options) : scaled_->apply(gradients, options);
}

void Optimizer::minimize(const Tensor& loss, const std::vector<Variable>& variables,
                         GradientTape& tape) const {
  scaled_ == nullptr ? state_->minimize(loss, variables, tape)
                     : scaled_->minimize(loss, variables, tape);
}

void Optimizer::build(const std::vector<Variable>& variables) const { state_->build(variables); }
void Optimizer::finalize_variable_values(const std::vector<Variable>& variables) const {
  state_->finalize_variable_values(variables);
}
void Optimizer::exclude_from_weight_decay(const std::vector<Variable>& var_list,
                                          const std::vector<std::string>& var_names) const {
  state_->exclude_from_weight_decay(var_list, var_names);
}
void Optimizer::describe(std::string_view class_name, const Config& config) const {
  state_->class_name = class_name;
  state_->config = config;
}
std::optional<Config> Optimizer::serialize() const {
  const bool known_rate = !state_->has_schedule() || state_->config.contains("learning_rate");
  if (state_->class_name.empty() || !known_rate) return std::nullopt;
  Config config = state_->config;
  if (!state_->has_schedule()) config.set("learning_rate", learning_rate());
  config = internal::serialized("keras.optimizers", state_->class_name, internal::json_of(config));
  return scaled_ == nullptr ? config : scaled_->serialize(config);
}
int64_t Optimizer::skipped_updates() const { return state_->skipped_updates(); }
Variable Optimizer::iterations() const { return state_->iterations(); }
double Optimizer::learning_rate() const { return state_->learning_rate(); }
void Optimizer::set_learning_rate(double learning_rate) const {
  state_->set_learning_rate(learning_rate);
}
List<Variable> Optimizer::variables() const { return state_->variables(); }
const std::string& Optimizer::name() const { return state_->name(); }
std::shared_ptr<train::Trackable> Optimizer::trackable() const {
  if (scaled_ != nullptr) return scaled_;
  return state_.pointer();
}

}  // namespace cohort::keras::optimizers
