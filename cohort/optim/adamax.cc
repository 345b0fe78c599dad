#include "cohort/optim/adamax.h"

#include <cmath>

#include "cohort/optim/formula.h"

namespace cohort::optim {
namespace {

class Adamax final : public internal::FormulaRule<Adamax> {
 public:
  explicit Adamax(const AdamaxOptions& options) : options_(options) {}

  std::string name() const override { return "Adamax"; }
  RuleConfig config() const override { return internal::config_of(name(), options_); }
  std::vector<SlotSpec> slots() const override { return {{.name = "m"}, {.name = "u"}}; }
  std::vector<SlotList> slot_lists() const override {
    return {{.name = "_m", .slot = "m"}, {.name = "_u", .slot = "u"}};
  }
  int num_slots() const override { return 2; }
  bool zero_gradient_is_no_op() const override { return false; }

  // Beside the learning rate: 1 - beta_1^t.
  StepScalars prepare(double learning_rate, int64_t iteration) const override {
    StepScalars scalars = internal::plain_step(learning_rate, iteration);
    scalars.more_float32[0] = correction<float>(iteration + 1);
    scalars.more_float64[0] = correction<double>(iteration + 1);
    return scalars;
  }

  template <class T, class Elements>
  void apply(const StepScalars& scalars, const Elements& slice) const {
    const auto lr = internal::step_size<T>(scalars, slice);
    const auto correction = internal::more<T>(scalars, slice, 0);
    const T gain = static_cast<T>(1 - options_.beta_1);
    const T beta_2 = static_cast<T>(options_.beta_2);
    const T epsilon = static_cast<T>(options_.epsilon);
    internal::for_each_element<2, T>(slice, [=](auto& param, auto& m, auto& u, auto g) {
      m += (g - m) * gain;
      const auto decayed = beta_2 * u;
      u = internal::larger(decayed, internal::magnitude(g));
      param -= lr * m / (correction * (u + epsilon));
    });
  }

 private:
  template <class T>
  T correction(int64_t t) const {
    return T(1) - static_cast<T>(internal::power(static_cast<T>(options_.beta_1), t));
  }

  const AdamaxOptions options_;
};

}  // namespace

std::unique_ptr<const UpdateRule> make_adamax(const AdamaxOptions& options) {
  internal::check_not_negative("AdamaxOptions.learning_rate", options.learning_rate);
  internal::check({.name = "AdamaxOptions.beta_1", .value = options.beta_1, .max_excluded = true});
  internal::check({.name = "AdamaxOptions.beta_2", .value = options.beta_2, .max_excluded = true});
  internal::check_not_negative("AdamaxOptions.epsilon", options.epsilon);
  return std::make_unique<Adamax>(options);
}

}  // namespace cohort::optim
