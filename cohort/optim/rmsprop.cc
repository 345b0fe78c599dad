#include "cohort/optim/rmsprop.h"

#include <cmath>
#include <type_traits>

#include "cohort/optim/formula.h"

namespace cohort::optim {
namespace {

// The coefficients in the dtype of the variable, and the parts that the forms have in common.
template <class T, class Number>
struct Formula {
  Number lr;
  T rho;
  T gain;  // 1 - rho
  T momentum;
  T epsilon;

  void decay(auto& average, const auto& value) const { average = rho * average + gain * value; }
  auto increment(const auto& g, const auto& variance) const {
    return lr * g * internal::inverse(internal::square_root(variance + epsilon));
  }
  void push(auto& param, auto& velocity, const auto& step) const {
    velocity = momentum * velocity + step;
    param -= velocity;
  }
};

class Rmsprop final : public internal::FormulaRule<Rmsprop> {
 public:
  explicit Rmsprop(const RmspropOptions& options) : options_(options) {}

  std::string name() const override { return "RMSprop"; }
  RuleConfig config() const override { return internal::config_of(name(), options_); }
  std::vector<SlotSpec> slots() const override {
    std::vector<SlotSpec> slots = {{.name = "velocity"}};
    if (has_momentum()) slots.push_back({.name = "momentum"});
    if (options_.centered) slots.push_back({.name = "average_gradient"});
    return slots;
  }
  std::vector<SlotList> slot_lists() const override {
    return {{.name = "_velocities", .slot = "velocity", .walk = 0},
            {.name = "_momentums", .slot = "momentum", .walk = 1},
            {.name = "_average_gradients", .slot = "average_gradient", .walk = 2}};
  }
  int num_slots() const override { return 1 + has_momentum() + options_.centered; }
  bool zero_gradient_is_no_op() const override { return false; }

  StepScalars prepare(double learning_rate, int64_t iteration) const override {
    return internal::plain_step(learning_rate, iteration);
  }

  template <class T, class Elements>
  void apply(const StepScalars& scalars, const Elements& slice) const {
    const auto lr = internal::step_size<T>(scalars, slice);
    const Formula<T, std::remove_const_t<decltype(lr)>> formula = {
        .lr = lr,
        .rho = static_cast<T>(options_.rho),
        .gain = static_cast<T>(1 - options_.rho),
        .momentum = static_cast<T>(options_.momentum),
        .epsilon = static_cast<T>(options_.epsilon)};
    if (options_.centered) {
      update_centered<T>(formula, slice);
    } else {
      update_plain<T>(formula, slice);
    }
  }

 private:
  bool has_momentum() const { return options_.momentum > 0; }

  template <class T, class Number, class Elements>
  void update_plain(const Formula<T, Number>& f, const Elements& slice) const {
    if (!has_momentum()) {
      internal::for_each_element<1, T>(slice, [=](auto& param, auto& square, auto g) {
        f.decay(square, g * g);
        param -= f.increment(g, square);
      });
    } else {
      internal::for_each_element<2, T>(slice,
                                       [=](auto& param, auto& square, auto& velocity, auto g) {
                                         f.decay(square, g * g);
                                         f.push(param, velocity, f.increment(g, square));
                                       });
    }
  }

  template <class T, class Number, class Elements>
  void update_centered(const Formula<T, Number>& f, const Elements& slice) const {
    if (!has_momentum()) {
      internal::for_each_element<2, T>(slice, [=](auto& param, auto& square, auto& mean, auto g) {
        f.decay(square, g * g);
        f.decay(mean, g);
        param -= f.increment(g, square - mean * mean);
      });
    } else {
      internal::for_each_element<3, T>(
          slice, [=](auto& param, auto& square, auto& velocity, auto& mean, auto g) {
            f.decay(square, g * g);
            f.decay(mean, g);
            f.push(param, velocity, f.increment(g, square - mean * mean));
          });
    }
  }

  const RmspropOptions options_;
};

}  // namespace

std::unique_ptr<const UpdateRule> make_rmsprop(const RmspropOptions& options) {
  internal::check_not_negative("RmspropOptions.learning_rate", options.learning_rate);
  internal::check({.name = "RmspropOptions.rho", .value = options.rho});
  internal::check({.name = "RmspropOptions.momentum", .value = options.momentum});
  internal::check_not_negative("RmspropOptions.epsilon", options.epsilon);
  return std::make_unique<Rmsprop>(options);
}

}  // namespace cohort::optim
