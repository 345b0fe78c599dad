#include "cohort/optim/adafactor.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "cohort/core/error.h"
#include "cohort/optim/make_rule.h"
#include "cohort/optim/transformed.h"

namespace cohort::optim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

// A variable with its slots, as tensors.
struct WholeTensors {
  WholeTensors(const UpdateRule& rule, const Tensor& initial) : param(initial.clone()) {
    for (const SlotSpec& slot : rule.slots()) {
      slots.push_back(slot.starts_as_variable
                          ? initial.clone()
                          : at::zeros(slot_shape(slot.form, param.sizes()), param.options()));
    }
  }

  void step(const UpdateRule& rule, double learning_rate, const Tensor& gradient) {
    std::vector<void*> memory;
    for (const Tensor& slot : slots) memory.push_back(slot.data_ptr());
    rule.update_whole(rule.prepare(learning_rate, iteration++), {.param = param.data_ptr(),
                                                                 .slots = memory.data(),
                                                                 .gradient = gradient.data_ptr(),
                                                                 .shape = param.sizes(),
                                                                 .dtype = param.scalar_type()});
  }
  void step_of_tensors(const UpdateRule& rule, double learning_rate, const Tensor& gradient) {
    TensorSlice slice{
        .params = {param}, .slots = {}, .gradients = {gradient}, .dtype = param.scalar_type()};
    for (const Tensor& slot : slots) slice.slots.push_back({slot});
    rule.update_tensors(rule.prepare(learning_rate, iteration++), slice);
  }

  Tensor param;
  std::vector<Tensor> slots;
  int64_t iteration = 0;
};

TEST(AdafactorTest, SlotsLackADimension) {
  EXPECT_THAT(slot_shape(SlotForm::kWithoutLast, {2, 3, 4}), ElementsAre(2, 3));
  EXPECT_THAT(slot_shape(SlotForm::kWithoutSecondLast, {2, 3, 4}), ElementsAre(2, 4));
  EXPECT_THAT(slot_shape(SlotForm::kVariable, {2, 3, 4}), ElementsAre(2, 3, 4));
  EXPECT_THAT(slot_shape(SlotForm::kWithoutLast, {7}), IsEmpty());
}

// If t is 1, the second moment is the squared gradient, so that each step is as long as the next.
TEST(AdafactorTest, TheFirstStepHasTheSizeOfTheVariable) {
  const auto rule = make_adafactor();
  WholeTensors variable(*rule, at::full({4}, 2, float64));
  variable.step(*rule, 0.1, at::tensor({1.0, -3.0, 5.0, -0.5}, float64));
  EXPECT_TRUE(at::allclose(variable.param, at::tensor({1.8, 2.2, 1.8, 2.2}, float64)));
}

TEST(AdafactorTest, FactorsTheSecondMomentOfMatrices) {
  const auto rule = make_adafactor();
  WholeTensors variable(*rule, at::ones({2, 2}, float64));
  variable.step(*rule, 0.1, at::tensor({1.0, 2.0, 3.0, 4.0}, float64).reshape({2, 2}));
  EXPECT_TRUE(at::allclose(variable.slots[0], at::tensor({2.5, 12.5}, float64)));
  EXPECT_TRUE(at::allclose(variable.slots[1], at::tensor({5.0, 10.0}, float64)));
  EXPECT_TRUE(at::allclose(
      variable.slots[2], at::tensor({5 / 3., 10 / 3., 25 / 3., 50 / 3.}, float64).reshape({2, 2})));
}

// Devices run the same formula by libtorch's operations.
TEST(AdafactorTest, SlicesOfTensorsAreUpdatedAlike) {
  for (const DType dtype : {float32, float64}) {
    for (const std::vector<int64_t>& shape :
         {std::vector<int64_t>{}, {5}, {3, 300}, {2, 3, 4}, {1, 1}}) {
      const auto rule = make_transformed(
          make_adafactor(), {.clipvalue = 0.4, .weight_decay = 0.1, .ema_momentum = 0.9});
      const Tensor initial = at::rand(shape, dtype);
      WholeTensors one(*rule, initial), other(*rule, initial);
      for (int i = 0; i < 5; ++i) {
        const Tensor gradient = at::rand(shape, dtype) - 0.5;
        one.step(*rule, 0.05, gradient);
        other.step_of_tensors(*rule, 0.05, gradient);
      }
      EXPECT_TRUE(at::allclose(one.param, other.param, 1e-4, 1e-6)) << one.param << other.param;
      for (size_t i = shape.size() < 2 ? 2 : 0; i < one.slots.size(); ++i) {
        EXPECT_TRUE(at::allclose(one.slots[i], other.slots[i], 1e-4, 1e-7)) << "slot " << i;
      }
    }
  }
}

TEST(AdafactorTest, NaNStaysNaN) {
  const auto rule = make_adafactor();
  WholeTensors variable(*rule, at::ones({2, 2}));
  Tensor gradient = at::ones({2, 2});
  gradient[0][0] = std::numeric_limits<double>::quiet_NaN();
  variable.step(*rule, 0.1, gradient);
  EXPECT_TRUE(variable.param.isnan().all().item<bool>());
}

TEST(AdafactorTest, IsMadeAgainOfItsConfig) {
  const auto rule = make_transformed(make_adafactor({.beta_2_decay = -0.5, .clip_threshold = 2}),
                                     {.weight_decay = 0.5});
  const auto again = make_rule(rule->config());
  EXPECT_TRUE(again->updates_whole_variables());
  EXPECT_EQ(again->config().values, rule->config().values);
}

TEST(AdafactorTest, RefusesInvalidOptions) {
  const auto message = [](const char* text) {
    return ThrowsMessage<InvalidArgumentError>(HasSubstr(text));
  };
  EXPECT_THAT([] { make_adafactor({.epsilon_1 = -1}); }, message("epsilon_1"));
  EXPECT_THAT([] { make_adafactor({.epsilon_2 = -1}); }, message("epsilon_2"));
  EXPECT_THAT([] { make_adafactor({.clip_threshold = 0}); }, message("clip_threshold"));
  EXPECT_THAT([] { make_adafactor({.beta_2_decay = std::nan("")}); }, message("beta_2_decay"));
}

}  // namespace
}  // namespace cohort::optim
