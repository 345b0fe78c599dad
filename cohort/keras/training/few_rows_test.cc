// Batches with fewer rows than there are replicas: what metrics and steps see of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/keras/training/testing_fit.h"

namespace cohort::keras {
namespace {

// Gives [n, 1] as [n].
Sequential flat_identity() {
  return Sequential({Input({1}), layers::Lambda([](const Tensor& x) { return x.squeeze(-1); })});
}

Tensor largest_error(const Tensor& y_true, const Tensor& y_pred) {
  return (y_true - y_pred).abs().max();  // libtorch refuses the maximum of nothing
}

metrics::CustomMetric largest_errors() {
  return metrics::CustomMetric(
      {.name = "largest_errors",
       .sums = {"sum", "batches"},
       .update =
           [](const Tensor& y_true, const Tensor& y_pred, const Tensor&) {
             return std::vector<Tensor>{largest_error(y_true, y_pred), at::ones({})};
           },
       .result = [](const std::vector<Tensor>& sums) { return sums[0] / sums[1]; }});
}

// A class of a program, with an update_state of its own.
struct Scaled : metrics::MeanMetricWrapper {
  Scaled() : MeanMetricWrapper(largest_error, {.name = "scaled"}) {}
  void update_state(const Tensor& y_true, const Tensor& y_pred, const Tensor&) const {
    const Tensor scale = y_true.max();
    MeanMetricWrapper::update_state(y_true / scale, y_pred / scale);
  }
};

// 5 rows in batches of 4: of the last one the second replica gets none.
TEST(FewRows, NoMetricSeesABatchWithoutRows) {
  const Tensor x = numbers({1, 1, 1, 1, 1}, {5, 1});
  const Tensor y = numbers({2, 2, 2, 2, 2});
  for (const int replicas : {1, 2}) {
    const auto strategy = distribute::mirrored(replicas);
    const auto scope = strategy.scope();
    const Sequential model = flat_identity();
    model.compile({.optimizer = "sgd",
                   .loss = "mse",
                   .metrics = {"mae", {"largest", largest_error}, largest_errors(), Scaled()}});
    const Logs logs = model.evaluate(x, y, {.batch_size = 4, .verbose = 0});
    for (const char* name : {"loss", "mae", "largest", "largest_errors"}) {
      EXPECT_EQ(logs[name], 1) << name << " of " << replicas;
    }
    EXPECT_EQ(logs["scaled"], 0.5) << replicas;
    EXPECT_EQ(elements(model.predict(x, {.batch_size = 4, .verbose = 0}).tensor()),
              elements(x.squeeze(-1)));
  }
}

TEST(FewRows, NoWeightedMetricSeesABatchWithoutRowsInTraining) {
  const Tensor x = numbers({1, 1, 1, 1, 1}, {5, 1});
  const Tensor weight = numbers({1, 2, 3, 4, 5});
  const auto largest_of_each = [](const Tensor& y_true, const Tensor& y_pred) {
    return (y_true - y_pred).abs().amax(0, true).expand_as(y_true);
  };
  for (const int replicas : {1, 2}) {
    const auto strategy = distribute::mirrored(replicas);
    const auto scope = strategy.scope();
    const Sequential model({layers::Dense(1, {.kernel_initializer = "ones"})});
    model.compile({.optimizer = optimizers::SGD({.learning_rate = 0}),
                   .loss = "mse",
                   .weighted_metrics = {{"largest", largest_of_each}, Scaled(), "mae"}});
    const History history =
        model.fit(x, x + 1, {.batch_size = 4, .verbose = 0, .sample_weight = weight});
    EXPECT_EQ(history["loss"].back(), 3) << replicas;
    EXPECT_EQ(history["largest"].back(), 1) << replicas;
    EXPECT_EQ(history["mae"].back(), 1) << replicas;
  }
}

class AddsMean : public layers::Layer {
  Tensor call(const Tensor& x, const CallOptions&) override {
    add_loss(x.mean());
    return x;
  }
};

TEST(FewRows, LossesOfLayersAreNumbers) {
  const Tensor x = numbers({1, 1, 1, 1, 1}, {5, 1});
  for (const int replicas : {1, 2}) {
    const auto strategy = distribute::mirrored(replicas);
    const auto scope = strategy.scope();
    const Sequential model(
        {layers::Dense(1, {.kernel_initializer = "ones"}), std::make_shared<AddsMean>()});
    model.compile({.optimizer = "sgd", .loss = "mse"});
    EXPECT_EQ(model.evaluate(x, x + 1, {.batch_size = 4, .verbose = 0})["loss"], 2) << replicas;
    model.fit(x, x + 1, {.batch_size = 4, .verbose = 0});
    EXPECT_GT(all_weights(model)[0], 1) << replicas;
  }
}

// The replica without rows makes the variables all the same, together with the other one.
TEST(FewRows, MetricsOfALoopOfOnesOwnCountTheOtherReplica) {
  const auto strategy = distribute::mirrored(2);
  const auto scope = strategy.scope();
  const metrics::MeanAbsoluteError mae;
  const metrics::CustomMetric largest = largest_errors();
  const metrics::MeanMetricWrapper wrapped(largest_error);
  strategy.run([&](distribute::ReplicaContext& context) {
    const int64_t rows = context.replica_id_in_sync_group() == 0 ? 2 : 0;
    const Tensor y = at::zeros({rows});
    for (const Tensor& x : {y + 3, y + 5}) {
      mae.update_state(y, x);
      largest.update_state(y, x);
      wrapped.update_state(y, x);
    }
  });
  EXPECT_EQ(mae.result().number(), 4);
  EXPECT_EQ(largest.result().number(), 4);
  EXPECT_EQ(wrapped.result().number(), 4);
}

// Rows that one side alone has are still a mistake.
TEST(FewRows, LabelsWithoutRowsDoNotFitPredictionsWithRows) {
  const metrics::MeanAbsoluteError mae;
  EXPECT_THAT(
      thrown<InvalidArgumentError>([&] { mae.update_state(at::zeros({0}), at::zeros({2})); }),
      ::testing::HasSubstr("do not fit"));
}

}  // namespace
}  // namespace cohort::keras
