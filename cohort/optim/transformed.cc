#include "cohort/optim/transformed.h"

#include <c10/util/accumulate.h>

#include <algorithm>
#include <array>
#include <utility>

#include "cohort/optim/formula.h"

namespace cohort::optim {
namespace {

// Elements at once: they stay in the first-level cache from one formula to the next.
constexpr int64_t kBlock = 512;

class Transformed final : public UpdateRule {
 public:
  Transformed(std::shared_ptr<const UpdateRule> rule, const TransformOptions& options)
      : rule_(std::move(rule)), options_(options), num_own_(rule_->num_slots()) {}

  std::string name() const override { return rule_->name(); }
  RuleConfig config() const override {
    RuleConfig config = rule_->config();
    config.transform = options_;
    return config;
  }
  std::vector<SlotSpec> slots() const override {
    std::vector<SlotSpec> slots = rule_->slots();
    if (has_average()) slots.push_back({.name = "average", .starts_as_variable = true});
    return slots;
  }
  std::vector<SlotList> slot_lists() const override {
    if (!has_average()) return rule_->slot_lists();
    std::vector<SlotList> lists = {{.name = "_model_variables_moving_average", .slot = "average"}};
    for (SlotList& list : rule_->slot_lists()) {
      ++list.walk;  // Keras makes the averages before the formula's own slots
      lists.push_back(std::move(list));
    }
    return lists;
  }
  std::vector<DerivedScalar> derived_scalars(int64_t iterations) const override {
    return rule_->derived_scalars(iterations);
  }
  int num_slots() const override { return num_own_ + (has_average() ? 1 : 0); }
  bool zero_gradient_is_no_op() const override {
    return rule_->zero_gradient_is_no_op() && !options_.weight_decay && !has_average();
  }

  StepScalars prepare(double learning_rate, int64_t iteration) const override {
    StepScalars scalars = rule_->prepare(learning_rate, iteration);
    scalars.learning_rate = learning_rate;
    const int64_t period = options_.ema_overwrite_frequency;
    scalars.last_of_period = period > 0 && (iteration + 1) % period == 0;
    return scalars;
  }

  void update(const StepScalars& scalars, const Slice& slice) const override {
    internal::dispatch_floating(name(), slice.dtype,
                                [&](auto zero) { update_as<decltype(zero)>(scalars, slice); });
  }

  void update_tensors(const StepScalars& scalars, const TensorSlice& slice) const override {
    internal::StoredTensors param(slice.params);
    TensorSlice own = slice;
    if (has_average()) own.slots.pop_back();
    if (options_.clipvalue > 0) {
      own.gradients = internal::clipped({slice.gradients}, options_.clipvalue).tensors;
    }
    if (options_.weight_decay) {
      param -= param * *options_.weight_decay * learning_rate_of(scalars, slice);
    }
    rule_->update_tensors(scalars, own);
    if (!has_average()) return;
    internal::StoredTensors averages(slice.slots[num_own_]);
    averages = averages * *options_.ema_momentum + param * (1 - *options_.ema_momentum);
    if (scalars.last_of_period) param = averages;
  }
  bool updates_whole_variables() const override { return rule_->updates_whole_variables(); }
  void update_whole(const StepScalars& scalars, const WholeVariable& whole) const override {
    internal::dispatch_floating(name(), whole.dtype, [&](auto zero) {
      using T = decltype(zero);
      const int64_t size = c10::multiply_integers(whole.shape);
      T* const param = static_cast<T*>(whole.param);
      WholeVariable own = whole;
      own.clipvalue = options_.clipvalue;
      if (options_.weight_decay) decay(param, size, scalars.learning_rate);
      rule_->update_whole(scalars, own);
      if (has_average()) average(static_cast<T*>(whole.slots[num_own_]), param, size, scalars);
    });
  }
  std::unique_ptr<const UpdateRule> without_decay() const {
    if (!options_.weight_decay) return nullptr;
    TransformOptions others = options_;
    others.weight_decay.reset();
    return std::make_unique<Transformed>(rule_, others);
  }

  // Every so many updates there is one operation more.
  bool takes_device_numbers() const override {
    return rule_->takes_device_numbers() && options_.ema_overwrite_frequency == 0;
  }

 private:
  static internal::TensorNumber learning_rate_of(const StepScalars& scalars,
                                                 const TensorSlice& slice) {
    constexpr size_t kLearningRate = kStepNumbers - 1;
    return slice.dtype == float32 ? internal::step_number<float>(scalars, slice, kLearningRate)
                                  : internal::step_number<double>(scalars, slice, kLearningRate);
  }

  bool has_average() const { return options_.ema_momentum.has_value(); }

  template <class T>
  void update_as(const StepScalars& scalars, const Slice& slice) const {
    std::array<T, kBlock> clipped;
    std::array<void*, kMaxSlots> slots{};
    for (int64_t begin = 0; begin < slice.size; begin += kBlock) {
      const int64_t size = std::min(kBlock, slice.size - begin);
      T* param = static_cast<T*>(slice.param) + begin;
      const T* gradient = static_cast<const T*>(slice.gradient) + begin;
      for (int i = 0; i < num_slots(); ++i) slots[i] = static_cast<T*>(slice.slots[i]) + begin;
      if (options_.clipvalue > 0) gradient = clip(gradient, size, clipped.data());
      if (options_.weight_decay) decay(param, size, scalars.learning_rate);
      rule_->update(scalars, {.param = param,
                              .slots = slots.data(),
                              .gradient = gradient,
                              .size = size,
                              .dtype = slice.dtype});
      if (has_average()) average(static_cast<T*>(slots[num_own_]), param, size, scalars);
    }
  }

  template <class T>
  const T* clip(const T* gradient, int64_t size, T* clipped) const {
    const T most = static_cast<T>(options_.clipvalue);
    for (int64_t i = 0; i < size; ++i) {
      const T below = gradient[i] > most ? most : gradient[i];
      clipped[i] = below < -most ? -most : below;
    }
    return clipped;
  }

  template <class T>
  void decay(T* param, int64_t size, double learning_rate) const {
    const T rate = static_cast<T>(*options_.weight_decay);
    const T lr = static_cast<T>(learning_rate);
    for (int64_t i = 0; i < size; ++i) param[i] -= param[i] * rate * lr;
  }

  template <class T>
  void average(T* __restrict averages, T* __restrict param, int64_t size,
               const StepScalars& scalars) const {
    const T momentum = static_cast<T>(*options_.ema_momentum);
    const T gain = static_cast<T>(1 - *options_.ema_momentum);
    for (int64_t i = 0; i < size; ++i) averages[i] = momentum * averages[i] + gain * param[i];
    if (scalars.last_of_period) std::copy_n(averages, size, param);
  }

  const std::shared_ptr<const UpdateRule> rule_;
  const TransformOptions options_;
  const int num_own_;
};

}  // namespace

std::unique_ptr<const UpdateRule> make_transformed(std::unique_ptr<const UpdateRule> rule,
                                                   const TransformOptions& options) {
  internal::check_not_negative("clipvalue", options.clipvalue);
  internal::check_not_negative("weight_decay", options.weight_decay.value_or(0));
  internal::check({.name = "ema_momentum", .value = options.ema_momentum.value_or(0)});
  if (options.ema_overwrite_frequency < 0) {
    throw InvalidArgumentError(internal::str(
        "ema_overwrite_frequency must not be negative, but is ", options.ema_overwrite_frequency));
  }
  if (options.ema_overwrite_frequency > 0 && !options.ema_momentum) {
    throw InvalidArgumentError(internal::str("ema_overwrite_frequency is ",
                                             options.ema_overwrite_frequency,
                                             ", but there are no moving averages: set use_ema"));
  }
  const bool nothing = options.clipvalue == 0 && !options.weight_decay && !options.ema_momentum;
  if (nothing) return rule;
  return std::make_unique<Transformed>(std::move(rule), options);
}

std::unique_ptr<const UpdateRule> without_weight_decay(const UpdateRule& rule) {
  const auto* transformed = dynamic_cast<const Transformed*>(&rule);
  return transformed == nullptr ? nullptr : transformed->without_decay();
}

}  // namespace cohort::optim
