// fit, evaluate and predict where workers of a cluster run the steps, on variables of ps tasks.
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>

#include "cohort/distribute/input/distributed_dataset.h"
#include "cohort/distribute/strategies/one_device_strategy.h"
#include "cohort/keras/training/fit_loop.h"
#include "cohort/keras/training/testing_fit.h"
#include "cohort/parameter_server/cluster_coordinator.h"
#include "cohort/parameter_server/testing_cluster.h"
#include "cohort/parameter_server/variables/cached_reads.h"

namespace cohort::keras {
namespace {

using callbacks::Callback;
using distribute::InputContext;
using distribute::ParameterServerStrategy;
using distribute::Strategy;
using distribute::TestingCluster;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr int64_t kRows = 13;
constexpr int64_t kRowsOfBatch = 6;

struct Outcome {
  std::vector<double> losses, accuracies, validation, weights, predictions;
};

Outcome train(const Strategy& strategy, bool shuffle) {
  const auto scope = strategy.scope();
  const Sequential model = small_classifier();
  model.compile(class_options());
  const LabelledImages data = make_images(kRows, float32);
  const History history = model.fit(data.images, data.labels,
                                    {.batch_size = kRowsOfBatch,
                                     .epochs = 3,
                                     .verbose = 0,
                                     .validation_data = image_batches(7, 3),
                                     .shuffle = shuffle});
  Outcome curve{history["loss"], history["accuracy"], history["val_loss"], all_weights(model), {}};
  curve.validation.push_back(model.evaluate(image_batches(7, 3), {.verbose = 0})["loss"]);
  curve.predictions =
      elements(model.predict(data.images, {.batch_size = 4, .verbose = 0}).tensor());
  return curve;
}

TEST(FitElsewhere, OneWorkerTrainsAsOneDeviceDoes) {
  for (const bool shuffle : {false, true}) {
    const auto curve_of = [&](const Strategy& strategy) {
      random::set_seed(3);
      return train(strategy, shuffle);
    };
    const Outcome expected = curve_of(distribute::OneDeviceStrategy("CPU:0"));
    const TestingCluster cluster(1, 1);
    const Outcome found = curve_of(ParameterServerStrategy(cluster.resolver()));
    EXPECT_LT(curve_difference(found.losses, expected.losses), 1e-5) << shuffle;
    EXPECT_THAT(found.accuracies, ElementsAreArray(expected.accuracies));
    EXPECT_LT(curve_difference(found.validation, expected.validation), 1e-5);
    EXPECT_THAT(found.weights, Pointwise(DoubleNear(1e-5), expected.weights));
    EXPECT_THAT(found.predictions, Pointwise(DoubleNear(1e-5), expected.predictions));
  }
}

// Counts how often it has seen each of the rows 0 to 99, in steps that may fail.
class Counter : public Model {
 public:
  Counter()
      : seen_(at::zeros({100}),
              {.name = "seen", .trainable = false, .aggregation = VariableAggregation::SUM}) {
    track("seen", seen_);
  }
  std::vector<double> take() {
    std::vector<double> seen = elements(seen_.value());
    seen_.assign(at::zeros({100}));
    return seen;
  }
  Tensor seen() const { return seen_.value(); }
  std::function<void(const Tensor& rows)> check = [](const Tensor&) {};

 protected:
  Tensor call(const Tensor& x, const CallOptions&) override { return x + 0.5; }
  Structure train_step(const Structure& x) override { return count(x.tensor()); }
  Structure test_step(const Structure& x) override { return count(x.tensor()); }

 private:
  Structure count(const Tensor& rows) {
    check(rows);
    seen_.assign_add(at::zeros({100}).index_add(0, rows, at::ones({rows.size(0)})));
    return dict({{"rows", rows.size(0)}});
  }
  Variable seen_;
};

struct Counting {
  Counting(int workers, int ps) : cluster(workers, ps), strategy(cluster.resolver()) {
    const auto scope = strategy.scope();
    counter = std::make_shared<Counter>();
    model.emplace(counter);
    model->compile({});
  }
  TestingCluster cluster;
  ParameterServerStrategy strategy;
  std::shared_ptr<Counter> counter;
  std::optional<ModelHandle> model;
};

data::Dataset rows(int64_t count) { return data::Dataset::range(count).batch(4); }
// The same, of a length that nobody knows.
data::Dataset some_rows(int64_t count) {
  return data::Dataset::range(count).filter([](const Tensor&) { return true; }).batch(4);
}

std::vector<double> times(int64_t rows, double each) {
  std::vector<double> seen(100, 0);
  std::fill_n(seen.begin(), rows, each);
  return seen;
}

TEST(FitElsewhere, SeveralWorkersSeeEachBatchOnceAnEpoch) {
  Counting run(3, 2);
  run.model->fit(rows(100), {.epochs = 2, .verbose = 0});
  EXPECT_THAT(run.counter->take(), ElementsAreArray(times(100, 2)));
  run.model->evaluate(rows(90), {.verbose = 0});
  EXPECT_THAT(run.counter->take(), ElementsAreArray(times(90, 1)));
  // This dataset's end is only known when a worker has met it.
  const History history = run.model->fit(some_rows(99).shuffle(20), {.epochs = 3, .verbose = 0});
  EXPECT_THAT(run.counter->take(), ElementsAreArray(times(99, 3)));
  EXPECT_EQ(history.epoch.size(), 3u);
  const Tensor predicted = run.model->predict(some_rows(99), {.verbose = 0}).tensor();
  EXPECT_TRUE(at::allclose(predicted, at::arange(99) + 0.5));
}

TEST(FitElsewhere, ALostWorkersBatchesCountOnce) {
  Counting run(3, 2);
  class Lose : public Callback {
   public:
    Lose(TestingCluster& cluster) : cluster_(cluster) {}
    void on_train_batch_end(int64_t batch, const Logs&) override {
      if (batch == 10) cluster_.stop("worker", 1);
    }

   private:
    TestingCluster& cluster_;
  } lose(run.cluster);
  run.model->fit(rows(100), {.epochs = 3, .verbose = 0, .callbacks = {lose}});
  EXPECT_THAT(run.counter->take(), ElementsAreArray(times(100, 3)));
}

TEST(FitElsewhere, ReportsNoMetricThatStepsDoNotUpdate) {
  const TestingCluster cluster(2, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const auto scope = strategy.scope();
  EXPECT_THAT(names_when_trained_by_loss_alone(),
              ElementsAre("loss", "val_loss", "val_error", "val_hits"));
}

TEST(FitElsewhere, CreatorsMakeADatasetForEachWorker) {
  Counting run(2, 1);
  std::atomic<int> made{0};
  const DatasetCreator creator([&](const InputContext& context) {
    ++made;
    EXPECT_EQ(context.num_input_pipelines, 2);
    return rows(100).shard(context.num_input_pipelines, context.input_pipeline_id).repeat();
  });
  const History history =
      run.model->fit(creator, {.epochs = 4, .verbose = 0, .steps_per_epoch = 5});
  const std::vector<double> seen = run.counter->take();
  EXPECT_EQ(std::accumulate(seen.begin(), seen.end(), 0.0), 4 * 5 * 4);
  EXPECT_GE(made, 2);
  EXPECT_THAT(history["rows"], ElementsAre(4, 4, 4, 4));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { run.model->fit(creator, {.verbose = 0}); }),
              HasSubstr("the data never ends: give steps_per_epoch"));
  // A worker's own data ends: so does the epoch, and the next begins anew.
  const DatasetCreator short_one([](const InputContext&) { return rows(8); });
  EXPECT_EQ(run.model->fit(short_one, {.epochs = 2, .verbose = 0}).epoch.size(), 2u);
}

TEST(FitElsewhere, ACreatorMakesNoVariables) {
  Counting run(2, 1);
  const DatasetCreator creator([](const InputContext&) {
    const Variable v(0, {.name = "v"});
    return rows(8);
  });
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { run.model->fit(creator, {.verbose = 0}); }),
              HasSubstr("a dataset function makes variable 'v'"));
}

TEST(FitElsewhere, EndlessDataIsDividedAmongWorkers) {
  Counting run(2, 1);
  run.model->fit(rows(100).repeat(), {.epochs = 2, .verbose = 0, .steps_per_epoch = 3});
  const std::vector<double> seen = run.counter->take();
  EXPECT_EQ(std::accumulate(seen.begin(), seen.end(), 0.0), 2 * 3 * 4);
}

TEST(FitElsewhere, AFailedStepEndsFitAndTheNextCallWorks) {
  Counting run(2, 1);
  run.counter->check = [](const Tensor& rows) {
    if (rows[0].item<int64_t>() == 40) throw DataLossError("row 40 is bad");
  };
  EXPECT_THAT(thrown<DataLossError>([&] { run.model->fit(rows(100), {.verbose = 0}); }),
              HasSubstr("row 40 is bad"));
  run.counter->check = [](const Tensor&) {};
  run.counter->take();
  run.model->fit(rows(100), {.verbose = 0});
  EXPECT_THAT(run.counter->take(), ElementsAreArray(times(100, 1)));
}

TEST(FitElsewhere, DataThatEndsEarlyEndsTraining) {
  Counting run(2, 1);
  const History history =
      run.model->fit(rows(20), {.epochs = 3, .verbose = 0, .steps_per_epoch = 8});
  EXPECT_EQ(history.epoch.size(), 1u);
  EXPECT_THAT(run.counter->take(), ElementsAreArray(times(20, 1)));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { run.model->fit(some_rows(0), {.verbose = 0}); }),
              HasSubstr("no batches"));
}

TEST(FitElsewhere, BatchHooksAreCalledAndCanStop) {
  Counting run(2, 1);
  class Stop : public Callback {
   public:
    void on_train_batch_end(int64_t batch, const Logs& logs) override {
      ++batches;
      if (batch % 4 == 0) {
        EXPECT_EQ(logs["rows"], 4);
      }
      if (batch == 9) model().set_stop_training(true);
    }
    int64_t batches = 0;
  } stop;
  run.model->fit(rows(100), {.epochs = 3, .verbose = 0, .callbacks = {stop}});
  EXPECT_EQ(stop.batches, 10);
  EXPECT_THAT(run.counter->take(), ElementsAreArray(times(40, 1)));
}

// More steps are scheduled than there are batches where the end is only known when a worker has met
// it.
TEST(FitElsewhere, BatchHooksAreCalledForBatchesThatThereAre) {
  Counting run(2, 1);
  std::vector<int64_t> begun;
  std::vector<int64_t> ended;
  const auto end = [&](int64_t batch, const Logs&) { ended.push_back(batch); };
  callbacks::LambdaCallback watch(
      {.on_train_batch_begin = [&](int64_t batch) { begun.push_back(batch); },
       .on_train_batch_end = end});
  class WatchOthers : public Callback {
   public:
    void on_test_batch_end(int64_t batch, const Logs&) override { tested.push_back(batch); }
    void on_predict_batch_end(int64_t batch) override { predicted.push_back(batch); }
    std::vector<int64_t> tested, predicted;
  } others;
  std::vector<int64_t> numbers(25);
  std::iota(numbers.begin(), numbers.end(), 0);
  for (int i = 0; i < 3; ++i) {
    begun.clear();
    ended.clear();
    others.tested.clear();
    others.predicted.clear();
    run.model->fit(some_rows(100), {.verbose = 0, .callbacks = {watch}});
    EXPECT_EQ(begun, numbers);
    EXPECT_EQ(ended, numbers);
    run.model->evaluate(some_rows(100), {.verbose = 0, .callbacks = {others}});
    EXPECT_EQ(others.tested, numbers);
    run.model->predict(some_rows(100), {.verbose = 0, .callbacks = {others}});
    EXPECT_EQ(others.predicted, numbers);
  }
  run.model->compile({.steps_per_execution = 10});
  ended.clear();
  run.model->fit(some_rows(100), {.verbose = 0, .callbacks = {watch}});
  EXPECT_THAT(ended, ElementsAre(9, 19, 24));
}

// Steps that were under way when it was asked to stop have changed the variables too.
TEST(FitElsewhere, AStopWithinDataOfUnknownLengthLosesNoStep) {
  Counting run(2, 1);
  run.counter->take();
  int64_t batches = 0;
  class Stop : public Callback {
   public:
    explicit Stop(const std::function<void(int64_t)>& end) : end_(end) {}
    void on_train_batch_end(int64_t batch, const Logs&) override {
      end_(batch);
      if (batch == 3) model().set_stop_training(true);
    }

   private:
    std::function<void(int64_t)> end_;
  };
  double at_settled = -1;
  int64_t settled = -1;
  Stop stop([&](int64_t batch) {
    ++batches;
    if (batch != 2) return;
    internal::FitState* fit = internal::Training::of(*internal::model_of(*run.model)).fit;
    fit->settle();
    settled = fit->progress->step;
    const std::vector<double> seen = elements(run.counter->seen());
    at_settled = std::accumulate(seen.begin(), seen.end(), 0.0);
  });
  const History history =
      run.model->fit(some_rows(100), {.epochs = 2, .verbose = 0, .callbacks = {stop}});
  EXPECT_EQ(at_settled, static_cast<double>(settled) * 4);
  EXPECT_GE(settled, 3);
  const std::vector<double> seen = run.counter->take();
  EXPECT_EQ(std::accumulate(seen.begin(), seen.end(), 0.0), static_cast<double>(batches) * 4);
  EXPECT_LT(batches, 25);
  EXPECT_EQ(history.epoch.size(), 1u);
}

// What it looks like is known only from its elements.
data::Dataset generated(int64_t count) {
  return data::Dataset::from_generator([count, i = 0]() mutable -> std::optional<Structure> {
    if (i++ == count) return std::nullopt;
    return tuple(at::ones({4}), at::ones({1}));
  });
}

TEST(FitElsewhere, TrainsOnAGeneratorsData) {
  const TestingCluster cluster(2, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const auto scope = strategy.scope();
  for (const bool is_padded : {false, true}) {
    const data::Dataset data = is_padded ? generated(20).padded_batch(5) : generated(20).batch(5);
    const Sequential built({Input({4}), layers::Dense(1)});
    const Sequential unbuilt({layers::Dense(1)});
    for (const Sequential& model : {built, unbuilt}) {
      model.compile({.optimizer = "sgd", .loss = "mse"});
      const History history = model.fit(data, {.epochs = 2, .verbose = 0, .validation_data = data});
      EXPECT_EQ(history["val_loss"].size(), 2u);
      EXPECT_EQ(model.optimizer().iterations().value().item<int64_t>(), 8);
      model.evaluate(data, {.verbose = 0});
      EXPECT_EQ(model.predict(data, {.verbose = 0}).tensor().size(0), 20);
    }
  }
}

TEST(FitElsewhere, LooksAtAGeneratorsDataWithoutTakingThem) {
  Counting run(2, 1);
  run.counter->take();
  const auto rows =
      data::Dataset::from_generator([i = int64_t(0)]() mutable -> std::optional<int64_t> {
        if (i == 20) return std::nullopt;
        return i++;
      });
  run.model->fit(rows.batch(4), {.epochs = 2, .verbose = 0});
  EXPECT_THAT(run.counter->take(), ElementsAreArray(times(20, 2)));
}

TEST(FitElsewhere, SaysHowToTrainOnDataThatCannotBeLookedAt) {
  const TestingCluster cluster(2, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const auto scope = strategy.scope();
  const auto data = data::Dataset::from_generator([i = 0]() mutable -> std::optional<Structure> {
                      if (i++ > 0) throw DataLossError("element 1");
                      return tuple(at::ones({4}), at::ones({1}));
                    }).batch(5);
  const Sequential model({layers::Dense(1)});
  model.compile({.optimizer = "sgd", .loss = "mse"});
  EXPECT_THAT(thrown<DataLossError>([&] { model.fit(data, {.verbose = 0}); }),
              ::testing::AllOf(HasSubstr("element 1"),
                               HasSubstr("give GeneratorOptions.output_spec, or build the model")));
}

TEST(FitElsewhere, SeveralOutputsHaveTheirLossesAndMetrics) {
  const TestingCluster cluster(2, 2);
  const ParameterServerStrategy strategy(cluster.resolver());
  const auto scope = strategy.scope();
  const SymbolicTensor x = Input({8, 8, 1});
  const SymbolicTensor flat = layers::Flatten()(x);
  const Functional model(x, SymbolicStructure::make_dict({{"kind", layers::Dense(3)(flat)},
                                                          {"size", layers::Dense(1)(flat)}}));
  model.compile({.optimizer = "adam",
                 .loss = {{"kind", class_loss()}, {"size", "mse"}},
                 .metrics = {{"kind", {"accuracy"}}}});
  const LabelledImages data = make_images(20, float32);
  const auto dataset =
      data::Dataset::from_tensor_slices(
          tuple(data.images,
                dict({{"kind", data.labels}, {"size", data.images.mean({1, 2, 3}).unsqueeze(1)}})))
          .batch(5);
  const History history = model.fit(dataset, {.epochs = 3, .verbose = 0});
  for (const char* name : {"loss", "kind_loss", "size_loss", "kind_accuracy"}) {
    EXPECT_EQ(history[name].size(), 3u) << name;
  }
  EXPECT_LT(history["loss"].back(), history["loss"].front());
  EXPECT_EQ(model.optimizer().iterations().value().item<int64_t>(), 12);
}

TEST(FitElsewhere, LayersAddMetrics) {
  class Watch : public layers::Layer {
    Tensor call(const Tensor& x, const CallOptions&) override {
      add_metric(x, "watched");
      return x;
    }
  };
  const TestingCluster cluster(2, 2);
  const ParameterServerStrategy strategy(cluster.resolver());
  const auto scope = strategy.scope();
  const Sequential model({std::make_shared<Watch>(), layers::Dense(1)});
  model.compile({.optimizer = "sgd", .loss = "mse"});
  const Tensor x = numbers({1, 2, 6, 3}, {4, 1});
  const History history = model.fit(x, x, {.batch_size = 1, .epochs = 2, .verbose = 0});
  EXPECT_THAT(history["watched"], ElementsAre(3, 3));
  EXPECT_EQ(model.evaluate(x, x, {.verbose = 0})["watched"], 3);
}

// What was read in the scope before stays; what training reads is what its steps have made.
TEST(FitElsewhere, ReadsWhatIsThereAlsoWhereReadsAreCached) {
  const TestingCluster cluster(2, 2);
  const ParameterServerStrategy strategy(cluster.resolver());
  const auto scope = strategy.scope();
  const auto train = [](bool is_cached) {
    const Sequential model({layers::Dense(1, {.kernel_initializer = "ones"})});
    model.compile(
        {.optimizer = optimizers::SGD({.learning_rate = 0.01}), .loss = "mse", .metrics = {"mae"}});
    const Tensor x = numbers({1, 2, 6, 3}, {4, 1});
    model(x);
    std::optional<distribute::CachedVariableReads> cached;
    if (is_cached) cached.emplace();
    const double before = all_weights(model)[0];
    std::vector<double> in_hooks;
    callbacks::LambdaCallback watch(
        {.on_epoch_end = [&](int64_t, Logs&) { in_hooks.push_back(all_weights(model)[0]); }});
    const History history = model.fit(x, 2 * x,
                                      {.batch_size = 4,
                                       .epochs = 3,
                                       .verbose = 0,
                                       .callbacks = {watch},
                                       .validation_data = Data(x, 2 * x)});
    const Logs logs = model.evaluate(x, 2 * x, {.verbose = 0});
    EXPECT_EQ(all_weights(model)[0] == before, is_cached);
    std::vector<double> all = in_hooks;
    for (const auto& [name, values] : history.history) {
      all.insert(all.end(), values.begin(), values.end());
    }
    for (const auto& [name, value] : logs) all.push_back(value);
    return all;
  };
  const std::vector<double> expected = train(false);
  EXPECT_GT(expected[1], expected[0]);  // the weight goes towards 2
  EXPECT_THAT(train(true), Pointwise(DoubleNear(1e-6), expected));
}

}  // namespace
}  // namespace cohort::keras
