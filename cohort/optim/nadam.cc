#include "cohort/optim/nadam.h"

#include <algorithm>
#include <cmath>

#include "cohort/optim/formula.h"

namespace cohort::optim {
namespace {

constexpr double kDecay = 0.96;

class Nadam final : public internal::FormulaRule<Nadam> {
 public:
  explicit Nadam(const NadamOptions& options) : options_(options) {}

  std::string name() const override { return "Nadam"; }
  RuleConfig config() const override { return internal::config_of(name(), options_); }
  std::vector<SlotSpec> slots() const override { return {{.name = "m"}, {.name = "v"}}; }
  std::vector<SlotList> slot_lists() const override {
    return {{.name = "_momentums", .slot = "m"}, {.name = "_velocities", .slot = "v"}};
  }
  std::vector<DerivedScalar> derived_scalars(int64_t iterations) const override {
    return {{.name = "_u_product", .value = product<double>(iterations)}};
  }
  int num_slots() const override { return 2; }
  bool zero_gradient_is_no_op() const override { return false; }

  // Beside the learning rate: the factors of m and g in m_hat, and 1 - beta_2^t.
  StepScalars prepare(double learning_rate, int64_t iteration) const override {
    StepScalars scalars = internal::plain_step(learning_rate, iteration);
    scalars.more_float32 = factors<float>(iteration + 1);
    scalars.more_float64 = factors<double>(iteration + 1);
    return scalars;
  }

  template <class T, class Elements>
  void apply(const StepScalars& scalars, const Elements& slice) const {
    const auto lr = internal::step_size<T>(scalars, slice);
    const auto of_m = internal::more<T>(scalars, slice, 0);
    const auto of_g = internal::more<T>(scalars, slice, 1);
    const auto correction = internal::more<T>(scalars, slice, 2);
    const T gain_1 = static_cast<T>(1 - options_.beta_1);
    const T gain_2 = static_cast<T>(1 - options_.beta_2);
    const T epsilon = static_cast<T>(options_.epsilon);
    internal::for_each_element<2, T>(slice, [=](auto& param, auto& m, auto& v, auto g) {
      m += (g - m) * gain_1;
      v += (g * g - v) * gain_2;
      const auto m_hat = of_m * m + of_g * g;
      param -= m_hat * lr / (internal::square_root(v / correction) + epsilon);
    });
  }

 private:
  template <class T>
  T u(int64_t t) const {
    return static_cast<T>(options_.beta_1) *
           (T(1) - T(0.5) * static_cast<T>(internal::power(static_cast<T>(kDecay), t)));
  }

  // U(t), in the arithmetic of T as Keras computes it.
  template <class T>
  T product(int64_t t) const {
    constexpr int64_t kLast = 1000;  // from there on 0.96^t / 2 is lost beside 1, in any dtype
    T result = 1;
    for (int64_t i = 1; i <= std::min(t, kLast); ++i) result *= u<T>(i);
    if (t > kLast) {
      result *= static_cast<T>(internal::power(static_cast<T>(options_.beta_1), t - kLast));
    }
    return result;
  }

  template <class T>
  std::array<T, 3> factors(int64_t t) const {
    const T product_t = product<T>(t);
    const T next = u<T>(t + 1);
    const T beta_2_power = static_cast<T>(internal::power(static_cast<T>(options_.beta_2), t));
    return {next / (T(1) - product_t * next), (T(1) - u<T>(t)) / (T(1) - product_t),
            T(1) - beta_2_power};
  }

  const NadamOptions options_;
};

}  // namespace

std::unique_ptr<const UpdateRule> make_nadam(const NadamOptions& options) {
  internal::check_not_negative("NadamOptions.learning_rate", options.learning_rate);
  internal::check({.name = "NadamOptions.beta_1", .value = options.beta_1, .max_excluded = true});
  internal::check({.name = "NadamOptions.beta_2", .value = options.beta_2, .max_excluded = true});
  internal::check_not_negative("NadamOptions.epsilon", options.epsilon);
  return std::make_unique<Nadam>(options);
}

}  // namespace cohort::optim
