#include "cohort/optim/lion.h"

#include "cohort/optim/formula.h"

namespace cohort::optim {
namespace {

class Lion final : public internal::FormulaRule<Lion> {
 public:
  explicit Lion(const LionOptions& options) : options_(options) {}

  std::string name() const override { return "Lion"; }
  RuleConfig config() const override { return internal::config_of(name(), options_); }
  std::vector<SlotSpec> slots() const override { return {{.name = "m"}}; }
  std::vector<SlotList> slot_lists() const override {
    return {{.name = "_momentums", .slot = "m"}};
  }
  int num_slots() const override { return 1; }
  bool zero_gradient_is_no_op() const override { return false; }

  StepScalars prepare(double learning_rate, int64_t iteration) const override {
    return internal::plain_step(learning_rate, iteration);
  }

  template <class T, class Elements>
  void apply(const StepScalars& scalars, const Elements& slice) const {
    const auto lr = internal::step_size<T>(scalars, slice);
    const T beta_1 = static_cast<T>(options_.beta_1);
    const T beta_2 = static_cast<T>(options_.beta_2);
    internal::for_each_element<1, T>(slice, [=](auto& param, auto& m, auto g) {
      param -= lr * internal::sign_of(m * beta_1 + g * (T(1) - beta_1));
      m = m * beta_2 + g * (T(1) - beta_2);
    });
  }

 private:
  const LionOptions options_;
};

}  // namespace

std::unique_ptr<const UpdateRule> make_lion(const LionOptions& options) {
  internal::check_not_negative("LionOptions.learning_rate", options.learning_rate);
  internal::check_positive("LionOptions.beta_1", options.beta_1);
  internal::check({.name = "LionOptions.beta_1", .value = options.beta_1});
  internal::check({.name = "LionOptions.beta_2", .value = options.beta_2, .max_excluded = true});
  return std::make_unique<Lion>(options);
}

}  // namespace cohort::optim
