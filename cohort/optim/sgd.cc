#include "cohort/optim/sgd.h"

#include "cohort/optim/formula.h"

namespace cohort::optim {
namespace {

class Sgd final : public internal::FormulaRule<Sgd> {
 public:
  explicit Sgd(const SgdOptions& options) : options_(options) {}

  std::string name() const override { return "SGD"; }
  RuleConfig config() const override { return internal::config_of(name(), options_); }
  std::vector<SlotSpec> slots() const override {
    if (!has_momentum()) return {};
    return {{.name = "m"}};
  }
  std::vector<SlotList> slot_lists() const override {
    return {{.name = "momentums", .slot = "m", .zeros_if_not_kept = true}};
  }
  int num_slots() const override { return has_momentum() ? 1 : 0; }
  bool zero_gradient_is_no_op() const override { return !has_momentum(); }

  StepScalars prepare(double learning_rate, int64_t iteration) const override {
    return internal::plain_step(learning_rate, iteration);
  }

  template <class T, class Elements>
  void apply(const StepScalars& scalars, const Elements& slice) const {
    const auto lr = internal::step_size<T>(scalars, slice);
    const T momentum = static_cast<T>(options_.momentum);
    if (!has_momentum()) {
      internal::for_each_element<0, T>(slice, [=](auto& param, auto g) { param -= g * lr; });
    } else if (!options_.nesterov) {
      internal::for_each_element<1, T>(slice, [=](auto& param, auto& m, auto g) {
        m = m * momentum - g * lr;
        param += m;
      });
    } else {
      internal::for_each_element<1, T>(slice, [=](auto& param, auto& m, auto g) {
        m = m * momentum - g * lr;
        param += m * momentum - g * lr;
      });
    }
  }

 private:
  bool has_momentum() const { return options_.momentum > 0; }

  const SgdOptions options_;
};

}  // namespace

std::unique_ptr<const UpdateRule> make_sgd(const SgdOptions& options) {
  internal::check_not_negative("SgdOptions.learning_rate", options.learning_rate);
  internal::check({.name = "SgdOptions.momentum", .value = options.momentum});
  return std::make_unique<Sgd>(options);
}

}  // namespace cohort::optim
