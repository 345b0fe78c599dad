// What holds for every rule: independence of slicing, sparse gradients, errors.
#include "cohort/optim/update_rule.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "cohort/core/error.h"
#include "cohort/optim/adadelta.h"
#include "cohort/optim/adagrad.h"
#include "cohort/optim/adam.h"
#include "cohort/optim/adamax.h"
#include "cohort/optim/ftrl.h"
#include "cohort/optim/lion.h"
#include "cohort/optim/nadam.h"
#include "cohort/optim/rmsprop.h"
#include "cohort/optim/sgd.h"
#include "cohort/optim/testing_variable.h"
#include "cohort/optim/transformed.h"

namespace cohort::optim {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// Not round numbers, so that a rounding done differently shows.
template <class T>
std::vector<T> values(int64_t size, uint32_t seed) {
  std::vector<T> result;
  uint32_t state = seed * 2654435761u + 1;
  for (int64_t i = 0; i < size; ++i) {
    state = state * 1664525u + 1013904223u;
    result.push_back(static_cast<T>(state) / T(2147483648.0) - T(1));
  }
  return result;
}

struct Case {
  const char* name;
  std::function<std::unique_ptr<const UpdateRule>()> make;
};

class EveryRuleTest : public ::testing::TestWithParam<Case> {
 protected:
  std::unique_ptr<const UpdateRule> rule_ = GetParam().make();

  template <class T>
  void expect_slicing_does_not_matter() {
    constexpr int64_t kSize = 133;
    TestingVariable<T> whole(*rule_, values<T>(kSize, 1));
    TestingVariable<T> cut = whole;
    for (int step = 0; step < 3; ++step) {
      const auto gradient = values<T>(kSize, 2 + step);
      whole.step(*rule_, 0.01, gradient);
      const StepScalars scalars = rule_->prepare(0.01, cut.iteration++);
      // Pieces of 1, 2, 3, ... elements start at every alignment and are all tail or none.
      for (int64_t begin = 0, length = 1; begin < kSize; begin += length++) {
        cut.update_slice(*rule_, scalars, gradient, begin, std::min(begin + length, kSize));
      }
    }
    EXPECT_EQ(whole, cut);
  }

  template <class T>
  void expect_sparse_is_dense_with_zeros(const std::vector<int64_t>& row_ids) {
    constexpr int64_t kRows = 9;
    constexpr int64_t kRowSize = 1000;  // gaps span several blocks of zeros
    TestingVariable<T> dense(*rule_, values<T>(kRows * kRowSize, 1));
    TestingVariable<T> sparse = dense;
    for (int step = 0; step < 3; ++step) {
      const auto rows = values<T>(static_cast<int64_t>(row_ids.size()) * kRowSize, 5 + step);
      std::vector<T> gradient(kRows * kRowSize, T(0));
      for (size_t i = 0; i < row_ids.size(); ++i) {
        std::copy_n(rows.begin() + static_cast<int64_t>(i) * kRowSize, kRowSize,
                    gradient.begin() + row_ids[i] * kRowSize);
      }
      dense.step(*rule_, 0.01, gradient);
      const auto slots = sparse.slot_pointers();
      update_rows(*rule_, rule_->prepare(0.01, sparse.iteration++),
                  {.param = sparse.param.data(),
                   .slots = slots.data(),
                   .num_rows = kRows,
                   .row_size = kRowSize,
                   .gradient = rows.data(),
                   .row_ids = row_ids.data(),
                   .num_row_ids = static_cast<int64_t>(row_ids.size()),
                   .dtype = TestingVariable<T>::kDtype});
    }
    EXPECT_EQ(dense, sparse);
  }
};

TEST_P(EveryRuleTest, SlicingDoesNotMatterInFloat32) { expect_slicing_does_not_matter<float>(); }
TEST_P(EveryRuleTest, SlicingDoesNotMatterInFloat64) { expect_slicing_does_not_matter<double>(); }

TEST_P(EveryRuleTest, SparseIsDenseWithZeros) {
  expect_sparse_is_dense_with_zeros<float>({0, 3, 4, 8});
  expect_sparse_is_dense_with_zeros<double>({1, 2, 7});
  expect_sparse_is_dense_with_zeros<float>({});
  expect_sparse_is_dense_with_zeros<double>({0, 1, 2, 3, 4, 5, 6, 7, 8});
}

TEST_P(EveryRuleTest, NumSlotsIsTheSizeOfSlots) {
  EXPECT_EQ(rule_->num_slots(), static_cast<int>(rule_->slots().size()));
  EXPECT_LE(rule_->num_slots(), kMaxSlots);
  // A checkpoint has each slot in one list.
  const std::vector<SlotList> lists = rule_->slot_lists();
  for (const SlotSpec& slot : rule_->slots()) {
    EXPECT_EQ(std::count_if(lists.begin(), lists.end(),
                            [&](const SlotList& list) { return list.slot == slot.name; }),
              1)
        << slot.name;
  }
}

TEST_P(EveryRuleTest, RefusesOtherDtypes) {
  const StepScalars scalars = rule_->prepare(0.1, 0);
  EXPECT_THAT([&] { rule_->update(scalars, {.dtype = int64}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr(rule_->name() +
                                                            " updates float32 and float64 "
                                                            "variables, but got one of int64")));
}

TEST_P(EveryRuleTest, RefusesInvalidSteps) {
  for (const double rate : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    EXPECT_THAT([&] { rule_->prepare(rate, 0); },
                ThrowsMessage<InvalidArgumentError>(HasSubstr("a finite number")));
  }
  EXPECT_THAT([&] { rule_->prepare(0.5, -3); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("-3")));
}

TEST_P(EveryRuleTest, RefusesRowIdsBeforeWritingAnything) {
  const std::vector<double> gradient(6, 1.0);
  for (const std::vector<int64_t>& ids :
       {std::vector<int64_t>{0, 2, 1}, {0, 1, 1}, {0, 1, 3}, {-1, 0, 1}}) {
    TestingVariable<double> variable(*rule_, values<double>(6, 1));
    const auto before = variable;
    const auto slots = variable.slot_pointers();
    EXPECT_THROW(update_rows(*rule_, rule_->prepare(0.1, 0),
                             {.param = variable.param.data(),
                              .slots = slots.data(),
                              .num_rows = 3,
                              .row_size = 2,
                              .gradient = gradient.data(),
                              .row_ids = ids.data(),
                              .num_row_ids = 3,
                              .dtype = float64}),
                 InvalidArgumentError);
    EXPECT_EQ(variable, before);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Rules, EveryRuleTest,
    ::testing::Values(
        Case{"sgd", [] { return make_sgd(); }},
        Case{"momentum", [] { return make_sgd({.momentum = 0.9}); }},
        Case{"nesterov", [] { return make_sgd({.momentum = 0.9, .nesterov = true}); }},
        Case{"adam", [] { return make_adam(); }},
        Case{"amsgrad", [] { return make_adam({.amsgrad = true}); }},
        Case{"rmsprop", [] { return make_rmsprop(); }},
        Case{"rmsprop_momentum", [] { return make_rmsprop({.momentum = 0.5}); }},
        Case{"rmsprop_centered", [] { return make_rmsprop({.centered = true}); }},
        Case{"rmsprop_all", [] { return make_rmsprop({.momentum = 0.5, .centered = true}); }},
        Case{"adadelta", [] { return make_adadelta(); }},
        Case{"adagrad", [] { return make_adagrad(); }},
        Case{"adamax", [] { return make_adamax(); }}, Case{"lion", [] { return make_lion(); }},
        Case{"nadam", [] { return make_nadam(); }},
        Case{"ftrl", [] { return make_ftrl({.l1_regularization_strength = 0.01}); }},
        Case{"ftrl_of_another_power",
             [] {
               return make_ftrl({.learning_rate_power = -0.7,
                                 .l2_shrinkage_regularization_strength = 0.1,
                                 .beta = 0.5});
             }},
        Case{"transformed",
             [] {
               return make_transformed(make_adam({.amsgrad = true}),
                                       {.clipvalue = 0.5,
                                        .weight_decay = 0.01,
                                        .ema_momentum = 0.9,
                                        .ema_overwrite_frequency = 2});
             }},
        Case{"clipped", [] { return make_transformed(make_sgd(), {.clipvalue = 0.5}); }}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(UpdateRowsTest, OnlyRulesWithoutDecayLeaveOtherRowsAlone) {
  EXPECT_TRUE(make_sgd()->zero_gradient_is_no_op());
  EXPECT_FALSE(make_sgd({.momentum = 0.5})->zero_gradient_is_no_op());
  EXPECT_FALSE(make_adam()->zero_gradient_is_no_op());
  EXPECT_FALSE(make_rmsprop()->zero_gradient_is_no_op());
  EXPECT_TRUE(make_adagrad()->zero_gradient_is_no_op());
  EXPECT_TRUE(make_transformed(make_sgd(), {.clipvalue = 1})->zero_gradient_is_no_op());
  EXPECT_FALSE(make_transformed(make_sgd(), {.weight_decay = 0.1})->zero_gradient_is_no_op());
  EXPECT_FALSE(make_transformed(make_sgd(), {.ema_momentum = 0.9})->zero_gradient_is_no_op());
}

}  // namespace
}  // namespace cohort::optim
