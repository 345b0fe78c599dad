// What fit prints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "cohort/keras/model/progress_text.h"
#include "cohort/keras/training/testing_fit.h"

namespace cohort::keras {
namespace {

TEST(ProgressText, IsThatOfKeras) {
  EXPECT_EQ(internal::log_number(0.44231), "0.4423");
  EXPECT_EQ(internal::log_number(0.000442), "4.4200e-04");
  EXPECT_EQ(internal::time_per(0.0284, "step"), " 28ms/step");
  EXPECT_EQ(internal::time_per(4.2, "epoch"), " 4s/epoch");
  EXPECT_EQ(internal::time_per(0.000512, "step"), " 512us/step");
  EXPECT_EQ(internal::time_left(3725), "1:02:05");
  EXPECT_EQ(internal::time_left(62), "1:02");
  EXPECT_EQ(internal::time_left(2.5), "3s");
  EXPECT_EQ(internal::count_of(5, 20), " 5/20");
  EXPECT_EQ(internal::count_of(5, -2), "5/Unknown");
  EXPECT_EQ(internal::bar_of(15, 30), "[==============>...............]");
  EXPECT_EQ(internal::bar_of(30, 30), "[" + std::string(30, '=') + "]");
}

struct Printed : ::testing::Test {
  Printed() { model.compile(class_options()); }
  std::string by(const std::function<void()>& work) {
    ::testing::internal::CaptureStdout();
    work();
    return ::testing::internal::GetCapturedStdout();
  }
  const Sequential model = small_classifier();
};

constexpr const char* kNumbers = "loss: [0-9.e-]+ - accuracy: [0-9.e-]+";

TEST_F(Printed, ALineAnEpoch) {
  const std::string text = by([&] {
    model.fit(image_batches(12, 6),
              {.epochs = 2, .verbose = 2, .validation_data = image_batches(6, 6)});
  });
  const std::string line =
      internal::str("2/2 - 0s - ", kNumbers, " - val_loss: [0-9.e-]+ - val_accuracy: [0-9.e-]+",
                    " - [0-9]+[mu]s/epoch - [0-9]+[mu]s/step\n");
  EXPECT_TRUE(std::regex_search(text, std::regex("^Epoch 1/2\n" + line + "Epoch 2/2\n" + line +
                                                 "Time: [0-9]+% [a-z]+, .*[0-9]+% other\n$")))
      << text;
}

TEST_F(Printed, ABarAtTheEndWhereThereIsNoTerminal) {
  const std::string text = by([&] { model.fit(image_batches(12, 6), {.verbose = 1}); });
  EXPECT_TRUE(std::regex_search(
      text, std::regex(internal::str("^Epoch 1/1\n2/2 \\[={30}\\] - 0s [0-9]+[mu]s/step - ",
                                     kNumbers, "\n"))))
      << text;
}

TEST_F(Printed, NothingIfAskedFor) {
  EXPECT_EQ(by([&] { model.fit(image_batches(12, 6), {.verbose = 0}); }), "");
  EXPECT_EQ(by([&] { model.predict(image_batches(12, 6), {.verbose = 0}); }), "");
}

TEST_F(Printed, EvaluationsToo) {
  const std::string text = by([&] { model.evaluate(image_batches(12, 6), {.verbose = 2}); });
  EXPECT_TRUE(std::regex_search(text, std::regex(internal::str("^2/2 - 0s - ", kNumbers)))) << text;
}

TEST_F(Printed, StepsThatNobodyCanCountAreUnknownUntilTheEnd) {
  const std::string text = by([&] {
    model.fit(image_batches(12, 6).filter([](const Tensor&, const Tensor&) { return true; }),
              {.epochs = 1, .verbose = 2});
  });
  EXPECT_THAT(text, ::testing::HasSubstr("2/2 - 0s"));
}

}  // namespace
}  // namespace cohort::keras
