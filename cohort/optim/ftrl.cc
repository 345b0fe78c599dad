#include "cohort/optim/ftrl.h"

#include <cmath>

#include "cohort/optim/formula.h"

namespace cohort::optim {
namespace {

class Ftrl final : public internal::FormulaRule<Ftrl> {
 public:
  explicit Ftrl(const FtrlOptions& options) : options_(options) {}

  std::string name() const override { return "Ftrl"; }
  RuleConfig config() const override { return internal::config_of(name(), options_); }
  std::vector<SlotSpec> slots() const override {
    return {{.name = "accumulator", .initial_value = options_.initial_accumulator_value},
            {.name = "linear"}};
  }
  std::vector<SlotList> slot_lists() const override {
    return {{.name = "_accumulators", .slot = "accumulator"},
            {.name = "_linears", .slot = "linear"}};
  }
  int num_slots() const override { return 2; }
  // A zero gradient still moves the variable to where its slots have it.
  bool zero_gradient_is_no_op() const override { return false; }

  StepScalars prepare(double learning_rate, int64_t iteration) const override {
    if (learning_rate == 0) {
      throw InvalidArgumentError("Ftrl divides by the learning rate, so that it must not be 0");
    }
    StepScalars scalars = internal::plain_step(learning_rate, iteration);
    scalars.more_float32[0] = twice_l2<float>(scalars.step_size_float32);
    scalars.more_float64[0] = twice_l2<double>(scalars.step_size_float64);
    return scalars;
  }

  template <class T, class Elements>
  void apply(const StepScalars& scalars, const Elements& slice) const {
    if (options_.learning_rate_power == -0.5) {
      apply_with<T>(scalars, slice, [](const auto& x) { return internal::square_root(x); });
    } else {
      const T power = static_cast<T>(-options_.learning_rate_power);
      apply_with<T>(scalars, slice,
                    [power](const auto& x) { return internal::power_of(x, power); });
    }
  }

 private:
  template <class T, class Elements, class Power>
  void apply_with(const StepScalars& scalars, const Elements& slice, const Power& power) const {
    const auto lr = internal::step_size<T>(scalars, slice);
    const T l1 = static_cast<T>(options_.l1_regularization_strength);
    const T twice_shrinkage = static_cast<T>(2 * options_.l2_shrinkage_regularization_strength);
    const auto twice_l2 = internal::more<T>(scalars, slice, 0);
    internal::for_each_element<2, T>(
        slice, [=](auto& param, auto& accumulator, auto& linear, auto g) {
          const auto shrunk = g + twice_shrinkage * param;
          const auto grown = accumulator + g * g;
          const auto grown_power = power(grown);
          linear += shrunk - (grown_power - power(accumulator)) / lr * param;
          const auto quadratic = grown_power / lr + twice_l2;
          param = (internal::clipped(linear, l1) - linear) / quadratic;
          accumulator = grown;
        });
  }

  // In the arithmetic of T, as Keras computes it.
  template <class T>
  T twice_l2(T lr) const {
    const T beta = static_cast<T>(options_.beta);
    return T(2) * (static_cast<T>(options_.l2_regularization_strength) + beta / (T(2) * lr));
  }

  const FtrlOptions options_;
};

}  // namespace

std::unique_ptr<const UpdateRule> make_ftrl(const FtrlOptions& options) {
  internal::check_not_negative("FtrlOptions.learning_rate", options.learning_rate);
  if (!(options.learning_rate_power <= 0 && std::isfinite(options.learning_rate_power))) {
    throw InvalidArgumentError(internal::str(
        "FtrlOptions.learning_rate_power must be a finite number not above 0, but is ",
        options.learning_rate_power));
  }
  internal::check_not_negative("FtrlOptions.initial_accumulator_value",
                               options.initial_accumulator_value);
  internal::check_not_negative("FtrlOptions.l1_regularization_strength",
                               options.l1_regularization_strength);
  internal::check_not_negative("FtrlOptions.l2_regularization_strength",
                               options.l2_regularization_strength);
  internal::check_not_negative("FtrlOptions.l2_shrinkage_regularization_strength",
                               options.l2_shrinkage_regularization_strength);
  internal::check_not_negative("FtrlOptions.beta", options.beta);
  return std::make_unique<Ftrl>(options);
}

}  // namespace cohort::optim
