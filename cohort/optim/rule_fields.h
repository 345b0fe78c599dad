// The hyper-parameters of all update rules, each stated once: by its member's name, which is
// Keras's. Configurations, rules that travel to parameter servers, and Keras's optimizers are read
// and written by it.
//
//   rule_fields([](const char* name, double& value) { ... }, options);
//   rule_fields([](const char*, auto& to, const auto& from) { to = from; }, to, from);
#pragma once

namespace cohort::internal {

// Calls visit(name, options.name, others.name...) for each hyper-parameter that `options` has. The
// learning rate is none: it comes with each step.
template <class Visit, class Options, class... Others>
void rule_fields(Visit&& visit, Options& options, Others&... others) {
  if constexpr (requires { options.beta_1; }) visit("beta_1", options.beta_1, others.beta_1...);
  if constexpr (requires { options.beta_2; }) visit("beta_2", options.beta_2, others.beta_2...);
  if constexpr (requires { options.amsgrad; }) visit("amsgrad", options.amsgrad, others.amsgrad...);
  if constexpr (requires { options.rho; }) visit("rho", options.rho, others.rho...);
  if constexpr (requires { options.epsilon; }) visit("epsilon", options.epsilon, others.epsilon...);
  if constexpr (requires { options.momentum; }) {
    visit("momentum", options.momentum, others.momentum...);
  }
  if constexpr (requires { options.nesterov; }) {
    visit("nesterov", options.nesterov, others.nesterov...);
  }
  if constexpr (requires { options.centered; }) {
    visit("centered", options.centered, others.centered...);
  }
  if constexpr (requires { options.initial_accumulator_value; }) {
    visit("initial_accumulator_value", options.initial_accumulator_value,
          others.initial_accumulator_value...);
  }
  if constexpr (requires { options.learning_rate_power; }) {
    visit("learning_rate_power", options.learning_rate_power, others.learning_rate_power...);
  }
  if constexpr (requires { options.l1_regularization_strength; }) {
    visit("l1_regularization_strength", options.l1_regularization_strength,
          others.l1_regularization_strength...);
  }
  if constexpr (requires { options.l2_regularization_strength; }) {
    visit("l2_regularization_strength", options.l2_regularization_strength,
          others.l2_regularization_strength...);
  }
  if constexpr (requires { options.l2_shrinkage_regularization_strength; }) {
    visit("l2_shrinkage_regularization_strength", options.l2_shrinkage_regularization_strength,
          others.l2_shrinkage_regularization_strength...);
  }
  if constexpr (requires { options.beta_2_decay; }) {
    visit("beta_2_decay", options.beta_2_decay, others.beta_2_decay...);
    visit("epsilon_1", options.epsilon_1, others.epsilon_1...);
    visit("epsilon_2", options.epsilon_2, others.epsilon_2...);
    visit("clip_threshold", options.clip_threshold, others.clip_threshold...);
  }
  if constexpr (requires { options.relative_step; }) {
    visit("relative_step", options.relative_step, others.relative_step...);
  }
  if constexpr (requires { options.beta; }) visit("beta", options.beta, others.beta...);
}

}  // namespace cohort::internal
