#include "cohort/optim/adam.h"

#include <cmath>

#include "cohort/optim/formula.h"

namespace cohort::optim {
namespace {

// lr * sqrt(1 - beta_2^t) / (1 - beta_1^t) in the arithmetic of T, as Keras computes it: in float32
// the first steps differ by 1e-5 from float64's.
template <class T>
T bias_corrected(const AdamOptions& options, double learning_rate, int64_t t) {
  const T beta_1_power = static_cast<T>(internal::power(static_cast<T>(options.beta_1), t));
  const T beta_2_power = static_cast<T>(internal::power(static_cast<T>(options.beta_2), t));
  return static_cast<T>(learning_rate) * std::sqrt(T(1) - beta_2_power) / (T(1) - beta_1_power);
}

class Adam final : public internal::FormulaRule<Adam> {
 public:
  explicit Adam(const AdamOptions& options) : options_(options) {}

  std::string name() const override { return "Adam"; }
  RuleConfig config() const override { return internal::config_of(name(), options_); }
  std::vector<SlotSpec> slots() const override {
    std::vector<SlotSpec> slots = {{.name = "m"}, {.name = "v"}};
    if (options_.amsgrad) slots.push_back({.name = "vhat"});
    return slots;
  }
  std::vector<SlotList> slot_lists() const override {
    std::vector<SlotList> lists = {{.name = "_momentums", .slot = "m"},
                                   {.name = "_velocities", .slot = "v"}};
    if (options_.amsgrad) lists.push_back({.name = "_velocity_hats", .slot = "vhat", .walk = 1});
    return lists;
  }
  int num_slots() const override { return options_.amsgrad ? 3 : 2; }
  bool zero_gradient_is_no_op() const override { return false; }

  StepScalars prepare(double learning_rate, int64_t iteration) const override {
    internal::check_step(learning_rate, iteration);
    return {.step_size_float32 = bias_corrected<float>(options_, learning_rate, iteration + 1),
            .step_size_float64 = bias_corrected<double>(options_, learning_rate, iteration + 1)};
  }

  template <class T, class Elements>
  void apply(const StepScalars& scalars, const Elements& slice) const {
    const auto alpha = internal::step_size<T>(scalars, slice);
    const T gain_1 = static_cast<T>(1 - options_.beta_1);
    const T gain_2 = static_cast<T>(1 - options_.beta_2);
    const T epsilon = static_cast<T>(options_.epsilon);
    if (!options_.amsgrad) {
      internal::for_each_element<2, T>(slice, [=](auto& param, auto& m, auto& v, auto g) {
        m += (g - m) * gain_1;
        v += (g * g - v) * gain_2;
        param -= m * alpha / (internal::square_root(v) + epsilon);
      });
    } else {
      internal::for_each_element<3, T>(
          slice, [=](auto& param, auto& m, auto& v, auto& v_hat, auto g) {
            m += (g - m) * gain_1;
            v += (g * g - v) * gain_2;
            v_hat = internal::larger(v_hat, v);
            param -= m * alpha / (internal::square_root(v_hat) + epsilon);
          });
    }
  }

 private:
  const AdamOptions options_;
};

}  // namespace

std::unique_ptr<const UpdateRule> make_adam(const AdamOptions& options) {
  internal::check_not_negative("AdamOptions.learning_rate", options.learning_rate);
  internal::check({.name = "AdamOptions.beta_1", .value = options.beta_1, .max_excluded = true});
  internal::check({.name = "AdamOptions.beta_2", .value = options.beta_2, .max_excluded = true});
  internal::check_not_negative("AdamOptions.epsilon", options.epsilon);
  return std::make_unique<Adam>(options);
}

}  // namespace cohort::optim
