#include "cohort/optim/adagrad.h"

#include <cmath>

#include "cohort/optim/formula.h"

namespace cohort::optim {
namespace {

class Adagrad final : public internal::FormulaRule<Adagrad> {
 public:
  explicit Adagrad(const AdagradOptions& options) : options_(options) {}

  std::string name() const override { return "Adagrad"; }
  RuleConfig config() const override { return internal::config_of(name(), options_); }
  std::vector<SlotSpec> slots() const override {
    return {{.name = "accumulator", .initial_value = options_.initial_accumulator_value}};
  }
  std::vector<SlotList> slot_lists() const override {
    return {{.name = "_accumulators", .slot = "accumulator"}};
  }
  int num_slots() const override { return 1; }
  bool zero_gradient_is_no_op() const override { return true; }

  StepScalars prepare(double learning_rate, int64_t iteration) const override {
    return internal::plain_step(learning_rate, iteration);
  }

  template <class T, class Elements>
  void apply(const StepScalars& scalars, const Elements& slice) const {
    const auto lr = internal::step_size<T>(scalars, slice);
    const T epsilon = static_cast<T>(options_.epsilon);
    internal::for_each_element<1, T>(slice, [=](auto& param, auto& accumulator, auto g) {
      accumulator += g * g;
      param -= lr * g / internal::square_root(accumulator + epsilon);
    });
  }

 private:
  const AdagradOptions options_;
};

}  // namespace

std::unique_ptr<const UpdateRule> make_adagrad(const AdagradOptions& options) {
  internal::check_not_negative("AdagradOptions.learning_rate", options.learning_rate);
  internal::check_not_negative("AdagradOptions.initial_accumulator_value",
                               options.initial_accumulator_value);
  internal::check_not_negative("AdagradOptions.epsilon", options.epsilon);
  if (options.initial_accumulator_value == 0 && options.epsilon == 0) {
    throw InvalidArgumentError(
        "AdagradOptions.initial_accumulator_value and AdagradOptions.epsilon are both 0, so that "
        "a zero gradient would be divided by 0");
  }
  return std::make_unique<Adagrad>(options);
}

}  // namespace cohort::optim
