// Metrics that layers add.
#include <ATen/ops/full_like.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "cohort/core/text.h"
#include "cohort/keras/training/testing_fit.h"

namespace cohort::keras {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class Watch : public layers::Layer {
 public:
  explicit Watch(std::string metric, const std::string& name = "")
      : Layer({.name = name}), metric_(std::move(metric)) {}
  Tensor call(const Tensor& x, const CallOptions&) override {
    add_metric(x, metric_);
    add_metric(x.mean() + 1, metric_);  // of no rows, no number
    return x;
  }

 private:
  std::string metric_;
};

// TensorFlow's test_distribution_strategy_with_add_metric_in_call, with a replica without rows.
TEST(AddMetric, IsReportedBesideThoseOfCompile) {
  for (const int replicas : {1, 2}) {
    const auto strategy = distribute::mirrored(replicas);
    const auto scope = strategy.scope();
    const Sequential inner({std::make_shared<Watch>("inner"), layers::Dense(1)});
    const Sequential model({std::make_shared<Watch>("watched"), inner});
    model.compile({.optimizer = "sgd", .loss = "mse", .metrics = {"mae"}});
    const Tensor x = numbers({1, 2, 6}, {3, 1});
    model(numbers({100}, {1, 1}));  // which fit forgets
    const History history = model.fit(
        x, x, {.batch_size = 1, .epochs = 2, .verbose = 0, .validation_data = Data(x * 2, x)});
    // Each element, and each batch's mean plus 1.
    EXPECT_THAT(history["watched"], ::testing::ElementsAre(3.5, 3.5)) << replicas;
    EXPECT_THAT(history["val_watched"], ::testing::ElementsAre(6.5, 6.5)) << replicas;
    EXPECT_EQ(history["inner"], history["watched"]);
    std::vector<std::string> names;
    for (const auto& [name, value] : model.evaluate(x, x, {.verbose = 0})) names.push_back(name);
    EXPECT_THAT(names, ::testing::ElementsAre("loss", "mae", "watched", "inner"));
  }
}

TEST(AddMetric, NeedsANameOfItsOwn) {
  const Tensor x = numbers({1, 2}, {2, 1});
  const auto error_of = [&](const std::string& name) {
    const Sequential model({std::make_shared<Watch>(name, "watch"), layers::Dense(1)});
    model.compile({.optimizer = "sgd", .loss = "mse", .metrics = {"mae"}});
    return thrown<InvalidArgumentError>([&] { model.fit(x, x, {.verbose = 0}); });
  };
  EXPECT_THAT(error_of(""), HasSubstr("add_metric needs a name"));
  EXPECT_THAT(error_of("mae"), AllOf(HasSubstr("'mae'"), HasSubstr("compile has one"),
                                     HasSubstr("layer 'watch'"), HasSubstr("another name")));
  for (const char* of_the_logs : {"loss", "val_loss", "val_mae"}) {
    EXPECT_THAT(error_of(of_the_logs),
                AllOf(HasSubstr("layer 'watch': add_metric got the name"),
                      HasSubstr(internal::quoted(of_the_logs)), HasSubstr("give another one")));
  }
  const Sequential twice(
      {std::make_shared<Watch>("a", "first"), std::make_shared<Watch>("a", "second")});
  twice(x);
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { twice.metrics(); }),
              AllOf(HasSubstr("'a'"), HasSubstr("layer 'first'"), HasSubstr("layer 'second'")));
}

TEST(AddMetric, NamesOfTheLogsAreRefusedInCompileToo) {
  const Sequential model({layers::Dense(1)});
  const auto error = [](const Tensor& y, const Tensor& p) { return (y - p).abs().mean(-1); };
  for (const char* name : {"loss", "val_error"}) {
    EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                  model.compile({.loss = "mse", .metrics = {{name, error}}});
                }),
                AllOf(HasSubstr("compile got a metric"), HasSubstr(internal::quoted(name))));
  }
}

// What a step adds is `value_of` its input.
class Adds : public layers::Layer {
 public:
  using ValueOf = std::function<Tensor(const Tensor&)>;
  explicit Adds(ValueOf value_of) : Layer({.name = "adds"}), value_of_(std::move(value_of)) {}
  Tensor call(const Tensor& x, const CallOptions&) override {
    add_metric(value_of_(x), "added");
    return x;
  }

 private:
  ValueOf value_of_;
};

double mean_of(const Adds::ValueOf& value_of, int replicas = 1) {
  const auto strategy = distribute::mirrored(replicas);
  const auto scope = strategy.scope();
  const Sequential model({std::make_shared<Adds>(value_of), layers::Dense(1)});
  model.compile({.optimizer = "sgd", .loss = "mse"});
  const Tensor x = numbers({1, 2, 6}, {3, 1});
  return model.evaluate(x, x, {.batch_size = 2, .verbose = 0})["added"];
}

TEST(AddMetric, TakesRealNumbersOfAnyDTypeAndRank) {
  for (const int replicas : {1, 2}) {  // of which the second has no rows of the last batch
    for (const DType dtype : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kInt,
                              at::kLong, at::kByte, at::kShort}) {
      EXPECT_EQ(mean_of([&](const Tensor& x) { return x.to(dtype); }, replicas), 3.) << dtype;
    }
    EXPECT_FLOAT_EQ(mean_of([](const Tensor& x) { return x.gt(1); }, replicas), 2.F / 3);
    EXPECT_EQ(mean_of(
                  [](const Tensor& x) {
                    return x.reshape({-1, 1, 1, 1, 1, 1});
                  },
                  replicas),
              3.);
    EXPECT_EQ(mean_of([](const Tensor& x) { return x.expand({-1, 100}).t(); }, replicas), 3.);
  }
  // Beyond what float16 can add up.
  EXPECT_EQ(mean_of([](const Tensor& x) { return at::full_like(x, 60000).to(at::kHalf); }), 60000.);
  EXPECT_TRUE(std::isnan(mean_of([](const Tensor& x) { return at::full_like(x, NAN); })));
}

TEST(AddMetric, RefusesWhatIsNoRealNumber) {
  const auto error_of = [](const Adds::ValueOf& value_of) {
    return thrown<InvalidArgumentError>([&] { mean_of(value_of); });
  };
  EXPECT_THAT(error_of([](const Tensor&) { return Tensor(); }),
              AllOf(HasSubstr("layer 'adds'"), HasSubstr("undefined"), HasSubstr("'added'")));
  EXPECT_THAT(error_of([](const Tensor& x) { return x.to(at::kComplexFloat); }),
              AllOf(HasSubstr("layer 'adds'"), HasSubstr("complex"), HasSubstr("'added'")));
}

TEST(AddMetric, ANameThatIsTakenIsFoundAfterTheFirstStep) {
  const Tensor x = numbers({1, 2, 3}, {3, 1});
  struct Count : callbacks::Callback {
    void on_train_batch_end(int64_t, const Logs&) override { ++steps; }
    void on_test_batch_end(int64_t, const Logs&) override { ++steps; }
    int64_t steps = 0;
  } count;
  const auto make = [] {
    const Sequential model(
        {std::make_shared<Watch>("a"), std::make_shared<Watch>("a"), layers::Dense(1)});
    model.compile({.optimizer = "sgd", .loss = "mse"});
    return model;
  };
  EXPECT_THAT(thrown<InvalidArgumentError>(
                  [&] { make().fit(x, x, {.batch_size = 1, .verbose = 0, .callbacks = {count}}); }),
              HasSubstr("'a'"));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                make().evaluate(x, x, {.batch_size = 1, .verbose = 0, .callbacks = {count}});
              }),
              HasSubstr("'a'"));
  EXPECT_EQ(count.steps, 0);
}

}  // namespace
}  // namespace cohort::keras
