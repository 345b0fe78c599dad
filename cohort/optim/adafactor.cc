#include "cohort/optim/adafactor.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "cohort/core/error.h"
#include "cohort/optim/formula.h"

namespace cohort::optim {
namespace {

constexpr size_t kDecayOfMoments = 1;  // its place among the numbers of a step, after the rate

// In the arithmetic of T, as Keras computes them.
template <class T>
T relative_rate(double learning_rate, int64_t t) {
  return std::min(static_cast<T>(learning_rate), T(1) / std::sqrt(static_cast<T>(t)));
}

template <class T>
T moment_decay(const AdafactorOptions& options, int64_t t) {
  return T(1) - static_cast<T>(std::pow(static_cast<double>(t), options.beta_2_decay));
}

// In float64, in an order that depends on `count` alone.
template <class Value>
double sum_of(int64_t count, const Value& value) {
  constexpr int64_t kLanes = 8;
  std::array<double, kLanes> lanes{};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t k = 0; k < kLanes; ++k) lanes[k] += double{value(i + k)};
  }
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  for (; i < count; ++i) sum += double{value(i)};
  return sum;
}

template <class Value>
double root_mean_square(int64_t count, const Value& value) {
  const double sum = sum_of(count, [&](int64_t i) {
    const double one = value(i);
    return one * one;
  });
  return std::sqrt(sum / static_cast<double>(count));
}

// One variable of T's in memory.
template <class T>
class WholeUpdate {
 public:
  WholeUpdate(const AdafactorOptions& options, const StepScalars& scalars,
              const WholeVariable& whole)
      : options_(options),
        shape_(whole.shape),
        size_(c10::multiply_integers(whole.shape)),
        param_(static_cast<T*>(whole.param)),
        r_(static_cast<T*>(whole.slots[0])),
        c_(static_cast<T*>(whole.slots[1])),
        v_(static_cast<T*>(whole.slots[2])),
        gradient_(static_cast<const T*>(whole.gradient)),
        most_(static_cast<T>(whole.clipvalue)),
        rate_(static_cast<T>(number_of_step(scalars, whole.dtype, 0))),
        beta_(static_cast<T>(number_of_step(scalars, whole.dtype, kDecayOfMoments))) {}

  void run() const {
    if (size_ == 0) return;
    const T size_of_param =
        static_cast<T>(root_mean_square(size_, [&](int64_t i) { return param_[i]; }));
    const T alpha = std::max(static_cast<T>(options_.epsilon_2), size_of_param) * rate_;
    shape_.size() < 2 ? update_moments() : update_factors();
    const T rms = static_cast<T>(root_mean_square(size_, [&](int64_t i) { return direction(i); }));
    // Keras's maximum is NaN where the root is.
    const T ratio = rms / static_cast<T>(options_.clip_threshold);
    const T divisor = ratio <= 1 ? T(1) : ratio;
    for (int64_t i = 0; i < size_; ++i) param_[i] -= alpha * (direction(i) / divisor);
  }

 private:
  T gradient(int64_t i) const {
    return most_ > 0 ? internal::clipped(gradient_[i], most_) : gradient_[i];
  }
  T square(int64_t i) const {
    const T g = gradient(i);
    return g * g + static_cast<T>(options_.epsilon_1);
  }
  T direction(int64_t i) const { return gradient(i) * (T(1) / std::sqrt(v_[i])); }

  void update_moments() const {
    for (int64_t i = 0; i < size_; ++i) v_[i] = beta_ * v_[i] + (1 - beta_) * square(i);
  }

  void update_factors() const {
    const int64_t rows = shape_[shape_.size() - 2];
    const int64_t columns = shape_[shape_.size() - 1];
    for (int64_t matrix = 0; matrix < size_ / (rows * columns); ++matrix) {
      update_rows_of(matrix, rows, columns);
      update_columns_of(matrix, rows, columns);
      multiply_factors(matrix, rows, columns);
    }
  }

  void update_rows_of(int64_t matrix, int64_t rows, int64_t columns) const {
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t begin = (matrix * rows + row) * columns;
      const double sum = sum_of(columns, [&](int64_t j) { return square(begin + j); });
      T& r = r_[matrix * rows + row];
      r = beta_ * r + (1 - beta_) * static_cast<T>(sum / static_cast<double>(columns));
    }
  }

  void update_columns_of(int64_t matrix, int64_t rows, int64_t columns) const {
    constexpr int64_t kAtOnce = 256;
    for (int64_t first = 0; first < columns; first += kAtOnce) {
      const int64_t count = std::min(kAtOnce, columns - first);
      std::array<double, kAtOnce> sums{};
      for (int64_t row = 0; row < rows; ++row) {
        const int64_t begin = (matrix * rows + row) * columns + first;
        for (int64_t j = 0; j < count; ++j) sums[j] += double{square(begin + j)};
      }
      T* const c = c_ + matrix * columns + first;
      for (int64_t j = 0; j < count; ++j) {
        c[j] = beta_ * c[j] + (1 - beta_) * static_cast<T>(sums[j] / static_cast<double>(rows));
      }
    }
  }

  void multiply_factors(int64_t matrix, int64_t rows, int64_t columns) const {
    const T* const r = r_ + matrix * rows;
    const T* const c = c_ + matrix * columns;
    const T mean =
        static_cast<T>(sum_of(rows, [&](int64_t i) { return r[i]; }) / static_cast<double>(rows));
    for (int64_t row = 0; row < rows; ++row) {
      const T share = r[row] / mean;
      T* const v = v_ + (matrix * rows + row) * columns;
      for (int64_t j = 0; j < columns; ++j) v[j] = share * c[j];
    }
  }

  const AdafactorOptions& options_;
  const at::IntArrayRef shape_;
  const int64_t size_;
  T* const param_;
  T* const r_;
  T* const c_;
  T* const v_;
  const T* const gradient_;
  const T most_;
  const T rate_;
  const T beta_;
};

Tensor rms_of(const Tensor& x) { return x.square().mean().sqrt(); }

class Adafactor final : public UpdateRule {
 public:
  explicit Adafactor(const AdafactorOptions& options) : options_(options) {}

  std::string name() const override { return "Adafactor"; }
  RuleConfig config() const override { return internal::config_of(name(), options_); }
  std::vector<SlotSpec> slots() const override {
    return {{.name = "r", .form = SlotForm::kWithoutLast},
            {.name = "c", .form = SlotForm::kWithoutSecondLast},
            {.name = "v"}};
  }
  std::vector<SlotList> slot_lists() const override {
    return {{.name = "_r", .slot = "r"}, {.name = "_c", .slot = "c"}, {.name = "_v", .slot = "v"}};
  }
  int num_slots() const override { return 3; }
  bool zero_gradient_is_no_op() const override { return false; }
  bool updates_whole_variables() const override { return true; }

  StepScalars prepare(double learning_rate, int64_t iteration) const override {
    internal::check_step(learning_rate, iteration);
    const int64_t t = iteration + 1;
    StepScalars scalars{.step_size_float32 = relative_rate<float>(learning_rate, t),
                        .step_size_float64 = relative_rate<double>(learning_rate, t)};
    scalars.more_float32[kDecayOfMoments - 1] = moment_decay<float>(options_, t);
    scalars.more_float64[kDecayOfMoments - 1] = moment_decay<double>(options_, t);
    return scalars;
  }

  void update(const StepScalars&, const Slice&) const override {
    throw InternalError("Adafactor was asked to update a slice; it updates whole variables");
  }
  void update_whole(const StepScalars& scalars, const WholeVariable& whole) const override {
    internal::dispatch_floating(name(), whole.dtype, [&](auto zero) {
      WholeUpdate<decltype(zero)>(options_, scalars, whole).run();
    });
  }
  void update_tensors(const StepScalars& scalars, const TensorSlice& slice) const override {
    for (size_t i = 0; i < slice.params.size(); ++i) update_tensor(scalars, slice, i);
  }
  bool takes_device_numbers() const override { return true; }

 private:
  static Tensor number(const StepScalars& scalars, const TensorSlice& slice, size_t i) {
    if (slice.numbers.defined()) return slice.numbers.select(0, static_cast<int64_t>(i));
    return at::full({}, number_of_step(scalars, slice.dtype, i), slice.params[0].options());
  }

  void update_tensor(const StepScalars& scalars, const TensorSlice& slice, size_t i) const {
    const Tensor rate = number(scalars, slice, 0);
    const Tensor beta = number(scalars, slice, kDecayOfMoments);
    const Tensor& param = slice.params[i];
    const Tensor& g = slice.gradients[i];
    const Tensor &r = slice.slots[0][i], &c = slice.slots[1][i], &v = slice.slots[2][i];
    const Tensor alpha = rms_of(param).clamp_min(options_.epsilon_2) * rate;
    const Tensor square = g.square() + options_.epsilon_1;
    if (param.dim() < 2) {
      v.copy_(beta * v + (1 - beta) * square);
    } else {
      r.copy_(beta * r + (1 - beta) * square.mean(-1));
      c.copy_(beta * c + (1 - beta) * square.mean(-2));
      v.copy_((r / r.mean(-1, /*keepdim=*/true)).unsqueeze(-1) * c.unsqueeze(-2));
    }
    const Tensor u = g * v.rsqrt();
    param.sub_(alpha * (u / (rms_of(u) / options_.clip_threshold).clamp_min(1)));
  }

  const AdafactorOptions options_;
};

}  // namespace

std::unique_ptr<const UpdateRule> make_adafactor(const AdafactorOptions& options) {
  if (!std::isfinite(options.beta_2_decay)) {
    throw InvalidArgumentError(internal::str(
        "AdafactorOptions.beta_2_decay must be a finite number, but is ", options.beta_2_decay));
  }
  internal::check_not_negative("AdafactorOptions.epsilon_1", options.epsilon_1);
  internal::check_not_negative("AdafactorOptions.epsilon_2", options.epsilon_2);
  internal::check_positive("AdafactorOptions.clip_threshold", options.clip_threshold);
  return std::make_unique<Adafactor>(options);
}

}  // namespace cohort::optim
