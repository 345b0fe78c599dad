#include "cohort/optim/adadelta.h"

#include <cmath>

#include "cohort/optim/formula.h"

namespace cohort::optim {
namespace {

class Adadelta final : public internal::FormulaRule<Adadelta> {
 public:
  explicit Adadelta(const AdadeltaOptions& options) : options_(options) {}

  std::string name() const override { return "Adadelta"; }
  RuleConfig config() const override { return internal::config_of(name(), options_); }
  std::vector<SlotSpec> slots() const override {
    return {{.name = "accumulated_grad"}, {.name = "accumulated_delta_var"}};
  }
  std::vector<SlotList> slot_lists() const override {
    return {{.name = "_accumulated_grads", .slot = "accumulated_grad"},
            {.name = "_accumulated_delta_vars", .slot = "accumulated_delta_var"}};
  }
  int num_slots() const override { return 2; }
  bool zero_gradient_is_no_op() const override { return false; }

  StepScalars prepare(double learning_rate, int64_t iteration) const override {
    return internal::plain_step(learning_rate, iteration);
  }

  template <class T, class Elements>
  void apply(const StepScalars& scalars, const Elements& slice) const {
    const auto lr = internal::step_size<T>(scalars, slice);
    const T rho = static_cast<T>(options_.rho);
    const T gain = static_cast<T>(1 - options_.rho);
    const T epsilon = static_cast<T>(options_.epsilon);
    internal::for_each_element<2, T>(slice, [=](auto& param, auto& grad, auto& delta_var, auto g) {
      grad = rho * grad + gain * g * g;
      const auto delta =
          -internal::square_root(delta_var + epsilon) * g / internal::square_root(grad + epsilon);
      delta_var = rho * delta_var + gain * delta * delta;
      param += lr * delta;
    });
  }

 private:
  const AdadeltaOptions options_;
};

}  // namespace

std::unique_ptr<const UpdateRule> make_adadelta(const AdadeltaOptions& options) {
  internal::check_not_negative("AdadeltaOptions.learning_rate", options.learning_rate);
  internal::check({.name = "AdadeltaOptions.rho", .value = options.rho});
  internal::check_not_negative("AdadeltaOptions.epsilon", options.epsilon);
  return std::make_unique<Adadelta>(options);
}

}  // namespace cohort::optim
