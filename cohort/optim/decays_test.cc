#include "cohort/optim/decays.h"

#include <gmock/gmock.h>

#include <cmath>

#include "cohort/core/error.h"

namespace cohort::optim {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(PolynomialDecayTest, EndsAtItsEnd) {
  const PolynomialDecay decay(
      {.initial_learning_rate = 1, .decay_steps = 10, .end_learning_rate = 0.5, .power = 2});
  EXPECT_DOUBLE_EQ(decay.at(0), 1);
  EXPECT_DOUBLE_EQ(decay.at(5), 0.5 + 0.5 * 0.25);
  EXPECT_DOUBLE_EQ(decay.at(10), 0.5);
  EXPECT_DOUBLE_EQ(decay.at(1000), 0.5);
}

TEST(PolynomialDecayTest, CyclesOverLongerAndLongerTimes) {
  const PolynomialDecay decay(
      {.initial_learning_rate = 1, .decay_steps = 10, .end_learning_rate = 0, .cycle = true});
  EXPECT_DOUBLE_EQ(decay.at(10), 0);
  EXPECT_DOUBLE_EQ(decay.at(11), 1 - 11.0 / 20);
  EXPECT_DOUBLE_EQ(decay.at(25), 1 - 25.0 / 30);
}

TEST(InverseTimeDecayTest, DividesByTheTime) {
  const InverseTimeDecayOptions options{
      .initial_learning_rate = 1, .decay_steps = 10, .decay_rate = 0.5};
  EXPECT_DOUBLE_EQ(InverseTimeDecay(options).at(15), 1 / 1.75);
  auto staircase = options;
  staircase.staircase = true;
  EXPECT_DOUBLE_EQ(InverseTimeDecay(staircase).at(19), 1 / 1.5);
}

TEST(CosineDecayRestartsTest, BeginsAnewWithLongerPeriods) {
  const CosineDecayRestarts decay({.initial_learning_rate = 1,
                                   .first_decay_steps = 10,
                                   .t_mul = 2,
                                   .m_mul = 0.5,
                                   .alpha = 0.1});
  EXPECT_DOUBLE_EQ(decay.at(0), 1);
  EXPECT_DOUBLE_EQ(decay.at(5), 0.9 * 0.5 + 0.1);
  EXPECT_DOUBLE_EQ(decay.at(10), 0.9 * 0.5 + 0.1);   // from half the rate
  EXPECT_DOUBLE_EQ(decay.at(20), 0.9 * 0.25 + 0.1);  // half of 20 iterations
  EXPECT_DOUBLE_EQ(decay.at(30), 0.9 * 0.25 + 0.1);
}

TEST(CosineDecayRestartsTest, PeriodsMayStayAsLong) {
  const CosineDecayRestarts decay(
      {.initial_learning_rate = 1, .first_decay_steps = 10, .t_mul = 1});
  EXPECT_DOUBLE_EQ(decay.at(1000005), 0.5);
}

TEST(DecaysTest, RefuseInvalidOptions) {
  const auto message = [](const char* text) {
    return ThrowsMessage<InvalidArgumentError>(HasSubstr(text));
  };
  EXPECT_THAT([] { PolynomialDecay({.initial_learning_rate = 1}); },
              message("PolynomialDecayOptions.decay_steps"));
  EXPECT_THAT([] { InverseTimeDecay({.decay_steps = 1, .decay_rate = -1}); },
              message("InverseTimeDecayOptions.decay_rate"));
  EXPECT_THAT([] { CosineDecayRestarts({.first_decay_steps = 1, .t_mul = 0.5}); },
              message("CosineDecayRestartsOptions.t_mul"));
}

}  // namespace
}  // namespace cohort::optim
