// Ctrl-C while fit validates.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <functional>
#include <string>
#include <vector>

#include "cohort/core/program/interrupt.h"
#include "cohort/distribute/testing_tasks.h"
#include "cohort/keras/training/testing_fit.h"

namespace cohort::keras {
namespace {

using callbacks::Callback;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Interrupts the validation of the second epoch, after its first step.
class InterruptsValidation : public Callback {
 public:
  void on_epoch_end(int64_t epoch, Logs& logs) override {
    said.push_back(internal::str("epoch ", epoch));
    names.clear();
    for (const auto& entry : logs) names.push_back(entry.first);
  }
  void on_test_begin() override { ++validations_; }
  void on_test_batch_end(int64_t batch, const Logs&) override {
    last_batch = batch;
    if (validations_ == 2 && batch == 0 && raises) ::raise(SIGINT);
  }
  void on_test_end(const Logs&) override { said.push_back("validated"); }
  void on_train_end(const Logs&) override { said.push_back("end"); }
  void on_train_interrupted() override { said.push_back("interrupted"); }

  bool raises = true;
  std::vector<std::string> said;
  std::vector<std::string> names;  // in the last logs of an epoch
  int64_t last_batch = -1;         // of validation

 private:
  int validations_ = 0;
};

class FitInterrupt : public ::testing::Test {
 protected:
  FitInterrupt() { ::signal(SIGINT, SIG_DFL); }  // which a shell in the background has changed

  // Ends with Ctrl-C. Returns what the error says.
  static std::string fit(const std::vector<callbacks::CallbackArgument>& list, int64_t rows) {
    const Sequential model = small_classifier();
    model.compile(class_options());
    try {
      model.fit(image_batches(12, 6), {.epochs = 3,
                                       .verbose = 0,
                                       .callbacks = list,
                                       .validation_data = image_batches(rows, 1)});
    } catch (const InterruptedError& error) {
      return error.what();
    }
    return "it was not interrupted";
  }
};

TEST_F(FitInterrupt, EndsValidationAfterItsStep) {
  InterruptsValidation interrupt;
  EXPECT_THAT(fit({interrupt}, 5), HasSubstr("epoch 3 before step 1"));
  EXPECT_EQ(interrupt.last_batch, 0);
  EXPECT_THAT(interrupt.said, ElementsAre("validated", "epoch 0", "epoch 1", "interrupted"));
  EXPECT_THAT(interrupt.names, ElementsAre("loss", "accuracy"));
}

TEST_F(FitInterrupt, CallbacksThatMissTheValidationDoNotHideIt) {
  class Reads : public Callback {
   public:
    void on_epoch_end(int64_t, Logs& logs) override { read.push_back(logs["val_loss"]); }
    std::vector<double> read;
  } reads;
  InterruptsValidation interrupt;
  ::testing::internal::CaptureStderr();
  EXPECT_THAT(fit({interrupt, reads}, 5), HasSubstr("epoch 3"));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::AllOf(HasSubstr("validation of epoch 2"), HasSubstr("'Reads'"),
                               HasSubstr("'val_loss'")));
  EXPECT_EQ(reads.read.size(), 1u);
  EXPECT_EQ(interrupt.said.back(), "interrupted");
}

TEST_F(FitInterrupt, TasksEndValidationAtTheSameStep) {
  std::vector<InterruptsValidation> interrupts(2);
  distribute::run_all_tasks(2, 1, [&](const distribute::Strategy& strategy, int task) {
    const auto scope = strategy.scope();
    InterruptsValidation& own = interrupts[static_cast<size_t>(task)];
    own.raises = task == 0;
    EXPECT_THAT(fit({own}, 80), HasSubstr("interrupted"));
  });
  EXPECT_EQ(interrupts[0].last_batch, interrupts[1].last_batch);
  EXPECT_LT(interrupts[0].last_batch, 32);
  for (const InterruptsValidation& one : interrupts) EXPECT_EQ(one.said.back(), "interrupted");
}

// Runs `call` on two tasks, of which the first is interrupted in its third step; both end, with
// this message.
void expect_tasks_end(const char* message,
                      const std::function<void(const Sequential&, Callback&)>& call) {
  struct InterruptsThirdStep : Callback {
    explicit InterruptsThirdStep(bool raises) : raises_(raises) {}
    void on_test_batch_end(int64_t batch, const Logs&) override { end(batch); }
    void on_predict_batch_end(int64_t batch) override { end(batch); }
    void end(int64_t batch) const {
      if (raises_ && batch == 2) ::raise(SIGINT);
    }
    bool raises_;
  };
  std::vector<std::string> said(2);
  distribute::run_all_tasks(2, 1, [&](const distribute::Strategy& strategy, int task) {
    const auto scope = strategy.scope();
    const Sequential model = small_classifier();
    model.compile(class_options());
    try {
      InterruptsThirdStep callback(task == 0);
      call(model, callback);
    } catch (const InterruptedError& error) {
      said[static_cast<size_t>(task)] = error.what();
    }
  });
  EXPECT_THAT(said, ::testing::Each(HasSubstr(message)));
}

TEST_F(FitInterrupt, TasksEndEvaluationAtTheSameStep) {
  expect_tasks_end("evaluation ended after step 16",
                   [](const Sequential& model, Callback& callback) {
                     model.evaluate(image_batches(80, 1), {.verbose = 0, .callbacks = {callback}});
                   });
}

TEST_F(FitInterrupt, TasksThatAreDoneLearnOfItToo) {
  expect_tasks_end("evaluation ended after step 3",
                   [](const Sequential& model, Callback& callback) {
                     model.evaluate(image_batches(6, 2), {.verbose = 0, .callbacks = {callback}});
                   });
}

TEST_F(FitInterrupt, TasksEndPredictionAtTheSameStep) {
  expect_tasks_end("prediction ended after step 16",
                   [](const Sequential& model, Callback& callback) {
                     model.predict(image_batches(80, 1), {.verbose = 0, .callbacks = {callback}});
                   });
}

}  // namespace
}  // namespace cohort::keras
