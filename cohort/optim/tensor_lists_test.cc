// Every rule updates lists of tensors to the bits of slices. libtorch's kernels of the CPU stand for a
// device's here; since version 2 some of them differ from a plain loop in the last bit.
#include "cohort/optim/tensor_lists.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <torch/version.h>

#include <string>
#include <vector>

#include "cohort/optim/adadelta.h"
#include "cohort/optim/adagrad.h"
#include "cohort/optim/adam.h"
#include "cohort/optim/adamax.h"
#include "cohort/optim/ftrl.h"
#include "cohort/optim/lion.h"
#include "cohort/optim/make_rule.h"
#include "cohort/optim/nadam.h"
#include "cohort/optim/rmsprop.h"
#include "cohort/optim/sgd.h"

namespace cohort::optim {
namespace {

struct Case {
  std::string name;
  RuleConfig config;
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

class TensorListsTest : public ::testing::TestWithParam<Case> {};

// Variables of three shapes and their slots.
struct State {
  std::vector<Tensor> params;
  std::vector<std::vector<Tensor>> slots;
};

State copy_of(const State& state) {
  State copy;
  for (const Tensor& param : state.params) copy.params.push_back(param.clone());
  for (const auto& slot : state.slots) {
    copy.slots.emplace_back();
    for (const Tensor& one : slot) copy.slots.back().push_back(one.clone());
  }
  return copy;
}

bool are_alike(const Tensor& a, const Tensor& b) {
  return TORCH_VERSION_MAJOR >= 2 ? at::allclose(a, b, 1e-6, 1e-7) : at::equal(a, b);
}

TEST_P(TensorListsTest, GiveTheBitsOfSlices) {
  for (const DType dtype : {float32, float64}) {
    const auto rule = make_rule(GetParam().config);
    at::manual_seed(4);
    State by_slice;
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{3, 5}, {17}, {}}) {
      by_slice.params.push_back(at::randn(shape, dtype));
    }
    for (const SlotSpec& slot : rule->slots()) {
      by_slice.slots.emplace_back();
      for (const Tensor& param : by_slice.params) {
        by_slice.slots.back().push_back(
            slot.starts_as_variable ? param.clone() : at::full(param.sizes(), slot.initial_value, param.options()));
      }
    }
    State by_list = copy_of(by_slice);
    for (int64_t iteration = 0; iteration < 4; ++iteration) {
      const StepScalars scalars = rule->prepare(0.05, iteration);
      std::vector<Tensor> gradients;
      for (size_t i = 0; i < by_slice.params.size(); ++i) {
        const Tensor& param = by_slice.params[i];
        gradients.push_back(at::randn(param.sizes(), dtype));
        std::vector<void*> slots;
        for (const auto& slot : by_slice.slots) slots.push_back(slot[i].data_ptr());
        rule->update(scalars, Slice{.param = param.data_ptr(),
                                    .slots = slots.data(),
                                    .gradient = gradients.back().data_ptr(),
                                    .size = param.numel(),
                                    .dtype = dtype});
      }
      rule->update_tensors(scalars, {by_list.params, by_list.slots, gradients, dtype});
    }
    for (size_t i = 0; i < by_slice.params.size(); ++i) {
      EXPECT_TRUE(are_alike(by_list.params[i], by_slice.params[i]))
          << by_list.params[i] << by_slice.params[i];
      for (size_t s = 0; s < by_slice.slots.size(); ++s) {
        EXPECT_TRUE(are_alike(by_list.slots[s][i], by_slice.slots[s][i])) << "slot " << s;
      }
    }
  }
}

RuleConfig transformed(RuleConfig config) {
  config.transform = TransformOptions{.clipvalue = 0.5,
                                      .weight_decay = 0.1,
                                      .ema_momentum = 0.9,
                                      .ema_overwrite_frequency = 2};
  return config;
}

INSTANTIATE_TEST_SUITE_P(
    All, TensorListsTest,
    ::testing::Values(
        Case{"SGD", make_sgd({})->config()},
        Case{"Momentum", make_sgd({.momentum = 0.9})->config()},
        Case{"Nesterov", make_sgd({.momentum = 0.9, .nesterov = true})->config()},
        Case{"Adam", make_adam({})->config()},
        Case{"Amsgrad", make_adam({.amsgrad = true})->config()},
        Case{"RMSprop", make_rmsprop({})->config()},
        Case{"CenteredRMSprop", make_rmsprop({.momentum = 0.9, .centered = true})->config()},
        Case{"Adagrad", make_adagrad({})->config()},
        Case{"Adadelta", make_adadelta({})->config()},
        Case{"Adamax", make_adamax({})->config()},
        Case{"Nadam", make_nadam({})->config()},
        Case{"Ftrl", make_ftrl({.l1_regularization_strength = 0.01,
                                .l2_regularization_strength = 0.01,
                                .l2_shrinkage_regularization_strength = 0.01})
                         ->config()},
        Case{"Lion", make_lion({})->config()},
        Case{"Transformed", transformed(make_adam({})->config())}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace cohort::optim
