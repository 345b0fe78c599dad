// fit, evaluate and predict on a simulated GPU: their steps are recorded as graphs by themselves.
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gmock/gmock.h>

#include "cohort/testing/device/gpu_and_cpu.h"

namespace cohort::keras {
namespace {

using distribute::OneDeviceStrategy;
using testing::device_counts;
using testing::DeviceCounts;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

class GpuCaptureFitTest : public ::testing::Test {
 protected:
  const testing::SimulatedGpus gpus_{2};
};

struct Data3 {
  Tensor x = at::randn({70, 5});
  Tensor y = at::randint(3, {70}, at::kLong);
};

Sequential make_model() {
  return Sequential({layers::Dense(8, {.activation = "relu"}), layers::BatchNormalization(),
                     layers::Dropout(0.25), layers::Dense(8), layers::Dropout(0.5),
                     layers::Dense(3)});
}

void compile(const Sequential& model, bool run_eagerly, int64_t steps_per_execution = 1) {
  model.compile({.optimizer = optimizers::Adam(
                     {.learning_rate = optim::ExponentialDecay(
                          {.initial_learning_rate = 0.05, .decay_steps = 5, .decay_rate = 0.5})}),
                 .loss = losses::SparseCategoricalCrossentropy({.from_logits = true}),
                 .metrics = {"accuracy"},
                 .steps_per_execution = steps_per_execution,
                 .run_eagerly = run_eagerly});
}

struct Result {
  std::vector<Tensor> values;
  std::vector<std::pair<std::string, std::vector<double>>> history;
  int64_t replays = 0;
};

// What `use` does of a model that is compiled, on GPU:0.
Result result_of(bool run_eagerly, const std::function<History(const Sequential&)>& use,
                 int64_t steps_per_execution = 1) {
  utils::set_random_seed(7);
  const OneDeviceStrategy strategy("GPU:0");
  const auto scope = strategy.scope();
  const Sequential model = make_model();
  compile(model, run_eagerly, steps_per_execution);
  const DeviceCounts before = device_counts();
  const History history = use(model);
  Result result;
  result.replays = (device_counts() - before).replays;
  result.history = history.history;
  result.values = values_of(model.weights());
  for (const Tensor& value : values_of(model.optimizer().variables())) {
    result.values.push_back(value);
  }
  return result;
}

void expect_equal(const Result& recorded, const Result& plain) {
  EXPECT_EQ(recorded.history, plain.history);
  ASSERT_EQ(recorded.values.size(), plain.values.size());
  for (size_t i = 0; i < plain.values.size(); ++i) {
    EXPECT_TRUE(at::equal(recorded.values[i], plain.values[i])) << i;
  }
}

TEST_F(GpuCaptureFitTest, FitHasTheBitsOfStepsThatRunAsTheyAre) {
  const Data3 data, more;
  const auto fit = [&](const Sequential& model) {  // 9 steps an epoch, the last one of 6 rows
    return model.fit(
        data.x, data.y,
        {.batch_size = 8, .epochs = 5, .verbose = 0, .validation_data = Data(more.x, more.y)});
  };
  const Result recorded = result_of(false, fit), plain = result_of(true, fit);
  expect_equal(recorded, plain);
  EXPECT_EQ(plain.replays, 0);
  // 40 steps of 8 rows and 5 of 6, and the same of validation; the first three of each as they are.
  EXPECT_EQ(recorded.replays, 2 * (37 + 2));
}

TEST_F(GpuCaptureFitTest, SeveralStepsBetweenCallbacksAreReplayedToo) {
  const Data3 data;
  const auto fit = [&](const Sequential& model) {
    return model.fit(data.x, data.y,
                     {.batch_size = 7, .epochs = 3, .verbose = 0, .validation_split = 0.3});
  };
  const Result recorded = result_of(false, fit, 3);
  expect_equal(recorded, result_of(true, fit, 3));
  // 7 steps an epoch: two launches of three steps and one of one, of which the first three run as
  // they are; in validation one of three.
  EXPECT_EQ(recorded.replays, 6 - 3);
}

TEST_F(GpuCaptureFitTest, StepsPerExecutionAreOneLaunch) {
  const Data3 data;
  const auto fit = [&](const Sequential& model) {
    return model.fit(data.x, data.y, {.batch_size = 7, .epochs = 6, .verbose = 0});
  };
  const Result five = result_of(false, fit, 5);
  expect_equal(five, result_of(true, fit, 5));
  EXPECT_EQ(five.replays, 6 * 2 - 3);
  const Result most = result_of(false, fit, 100);  // 10 steps an epoch
  EXPECT_EQ(most.replays, 6 - 3);
  expect_equal(most, result_of(true, fit, 100));
}

TEST_F(GpuCaptureFitTest, OneLaunchOfManyStepsCopiesFromTheHostOnce) {
  const OneDeviceStrategy strategy("GPU:0");
  const auto scope = strategy.scope();
  const Sequential model = make_model();
  compile(model, false, 4);
  const Tensor x = at::randn({320, 5}), y = at::randint(3, {320}, at::kLong);
  const auto counts_of = [&](int64_t steps) {
    const DeviceCounts before = device_counts();
    model.fit(x, y, {.batch_size = 8, .verbose = 0, .steps_per_epoch = steps});
    return device_counts() - before;
  };
  counts_of(16);
  const DeviceCounts few = counts_of(16), many = counts_of(32);
  const DeviceCounts more = many - few;
  EXPECT_EQ(more.replays, 4);
  EXPECT_EQ(more.host_waits, 0);
  EXPECT_EQ(more.kernels, 16 * 2 + 4);  // copies of x and y to the graph's memory, the graph
}

// Steps are counted one by one, also where several run as one.
TEST_F(GpuCaptureFitTest, ALabelOutOfRangeNamesItsStepAmongSeveral) {
  Data3 data;
  data.y[41] = 3;
  const OneDeviceStrategy strategy("GPU:0");
  const auto scope = strategy.scope();
  const Sequential model = make_model();
  compile(model, false, 5);
  const FitOptions options{.batch_size = 7, .epochs = 2, .verbose = 0, .shuffle = false};
  EXPECT_THAT(
      [&] { model.fit(data.x, data.y, options); },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("label 3 of step 6 is outside [0, 3)")));
}

TEST_F(GpuCaptureFitTest, ALayerThatIsFrozenBetweenFitsStays) {
  const Data3 data;
  const auto fit = [&](const Sequential& model) {
    const FitOptions options{.batch_size = 10, .epochs = 2, .verbose = 0};
    model.fit(data.x, data.y, options);
    model.layers()[0]->set_trainable(false);
    model.layers()[1]->set_trainable(false);
    model.fit(data.x, data.y, options);
    model.layers()[0]->set_trainable(true);
    return model.fit(data.x, data.y, options);
  };
  const Result recorded = result_of(false, fit);
  expect_equal(recorded, result_of(true, fit));
  EXPECT_GT(recorded.replays, 20);
}

TEST_F(GpuCaptureFitTest, AModelThatIsCompiledAnewHasNewGraphs) {
  const Data3 data;
  const auto fit = [&](bool run_eagerly) {
    return [&, run_eagerly](const Sequential& model) {
      const FitOptions options{.batch_size = 10, .epochs = 2, .verbose = 0};
      model.fit(data.x, data.y, options);
      compile(model, run_eagerly);
      return model.fit(data.x, data.y, options);
    };
  };
  const Result recorded = result_of(false, fit(false));
  expect_equal(recorded, result_of(true, fit(true)));
  EXPECT_EQ(recorded.replays, 2 * 11);
}

TEST_F(GpuCaptureFitTest, EvaluateAndPredictAreRecordedToo) {
  const Data3 data;
  std::vector<Tensor> predictions;
  const auto use = [&](const Sequential& model) {
    model.evaluate(data.x, data.y, {.batch_size = 10, .verbose = 0});
    predictions.push_back(model.predict(data.x, {.batch_size = 10, .verbose = 0}).tensor());
    History history;
    for (const auto& [name, value] :
         model.evaluate(data.x, data.y, {.batch_size = 10, .verbose = 0})) {
      history.history.emplace_back(name, std::vector<double>{value});
    }
    return history;
  };
  const Result recorded = result_of(false, use);
  expect_equal(recorded, result_of(true, use));
  EXPECT_EQ(recorded.replays, 14 - 3 + 7 - 3);
  EXPECT_TRUE(at::equal(predictions[0].cpu(), predictions[1].cpu()));
}

TEST_F(GpuCaptureFitTest, AStepOfFitIsOneLaunch) {
  const OneDeviceStrategy strategy("GPU:0");
  const auto scope = strategy.scope();
  const Sequential model = make_model();
  compile(model, false);
  const Tensor x = at::randn({160, 5}), y = at::randint(3, {160}, at::kLong);
  const auto counts_of = [&](int64_t steps) {
    const DeviceCounts before = device_counts();
    model.fit(x, y, {.batch_size = 8, .verbose = 0, .steps_per_epoch = steps});
    return device_counts() - before;
  };
  counts_of(6);
  const DeviceCounts few = counts_of(10), many = counts_of(20);
  const DeviceCounts more = many - few;
  EXPECT_EQ(more.replays, 10);
  EXPECT_EQ(more.host_waits, 0);
  // x, y, and what the host draws and counts; some of the batches had been read ahead.
  EXPECT_LE(more.to_device, 10 * 3);
  EXPECT_EQ(more.kernels, 10 * 3);  // copies of x and y to the graph's memory, the graph
}

// Ids, and a model of them.
struct Words {
  Tensor x = at::randint(9, {64, 4}, at::kLong);
  Tensor y = at::randn({64, 1});
};

Sequential make_model_of_words() {
  return Sequential(
      {layers::Embedding(9, 3, {.name = "words"}), layers::Flatten(), layers::Dense(1)});
}

TEST_F(GpuCaptureFitTest, StepsWithAnEmbeddingAreRecorded) {
  const Words words;
  for (const char* optimizer : {"sgd", "adam", "adagrad"}) {
    std::vector<std::vector<Tensor>> results;
    for (const bool run_eagerly : {true, false}) {
      utils::set_random_seed(7);
      const OneDeviceStrategy strategy("GPU:0");
      const auto scope = strategy.scope();
      const Sequential model = make_model_of_words();
      model.compile({.optimizer = optimizer, .loss = "mse", .run_eagerly = run_eagerly});
      const auto counts_of = [&](int64_t steps) {
        const DeviceCounts before = device_counts();
        model.fit(words.x, words.y, {.batch_size = 8, .verbose = 0, .steps_per_epoch = steps});
        return device_counts() - before;
      };
      counts_of(4);
      const DeviceCounts few = counts_of(5), many = counts_of(8);
      const DeviceCounts more = many - few;
      EXPECT_EQ(more.replays, run_eagerly ? 0 : 3) << optimizer;
      EXPECT_EQ(more.host_waits, 0) << optimizer;
      results.push_back(values_of(model.weights()));
    }
    for (size_t i = 0; i < results[0].size(); ++i) {
      EXPECT_TRUE(at::equal(results[0][i], results[1][i])) << optimizer << i;
    }
  }
}

// Steps 1 to 8 are those of the first epoch.
TEST_F(GpuCaptureFitTest, AnIdOutOfRangeIsAnErrorOfTheEpochThatNamesItsStep) {
  for (const bool run_eagerly : {true, false}) {
    for (const int64_t row : {3, 63}) {  // in steps 1 and 8
      Words words;
      words.x[row][2] = row == 3 ? 9 : -2;
      const OneDeviceStrategy strategy("GPU:0");
      const auto scope = strategy.scope();
      const Sequential model = make_model_of_words();
      model.compile({.optimizer = "adam", .loss = "mse", .run_eagerly = run_eagerly});
      const FitOptions options{.batch_size = 8, .verbose = 0, .shuffle = false};
      EXPECT_THAT([&] { model.fit(words.x, words.y, options); },
                  ThrowsMessage<InvalidArgumentError>(HasSubstr(
                      row == 3 ? "layer 'words': the id 9 of step 1 is outside [0, 9)"
                               : "layer 'words': the id -2 of step 8 is outside [0, 9)")));
      words.x[row][2] = 0;
      model.fit(words.x, words.y, options);  // once is enough
    }
  }
}

TEST_F(GpuCaptureFitTest, APredictionFromAnIdOutOfRangeIsAnError) {
  const OneDeviceStrategy strategy("GPU:0");
  const auto scope = strategy.scope();
  const Sequential model = make_model_of_words();
  Words words;
  words.x[63][0] = 10;
  EXPECT_THAT([&] { model.predict(words.x, {.batch_size = 8, .verbose = 0}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("the id 10 of step 8 is outside")));
}

TEST_F(GpuCaptureFitTest, EveryMetricIsRecorded) {
  using Make = std::function<MetricArgument()>;
  const std::vector<std::pair<std::string, Make>> all = {
      {"auc", [] { return metrics::AUC(); }},
      {"auc_pr",
       [] {
         return metrics::AUC({.curve = metrics::Curve::PR, .thresholds = {0.7, 0.2}});
       }},
      {"precision", [] { return metrics::Precision(); }},
      {"precisions", [] { return metrics::Precision({.thresholds = {0.4}}); }},
      {"recall", [] { return metrics::Recall({.top_k = 1}); }},
      {"true_positives", [] { return metrics::TruePositives(); }},
      {"false_negatives", [] { return metrics::FalseNegatives(); }},
      {"precision_at_recall", [] { return metrics::PrecisionAtRecall(0.5); }},
      {"accuracy", [] { return "accuracy"; }},
      {"binary_accuracy", [] { return "binary_accuracy"; }},
      {"mae", [] { return "mae"; }},
      {"mape", [] { return "mape"; }},
      {"rmse", [] { return metrics::RootMeanSquaredError(); }},
      {"cosine", [] { return metrics::CosineSimilarity(); }},
  };
  const Tensor x = at::randn({64, 5}), y = at::randint(2, {64, 1}, at::kFloat);
  for (const auto& [name, make] : all) {
    std::vector<std::vector<double>> found;
    int64_t replays = 0;
    for (const bool run_eagerly : {true, false}) {
      utils::set_random_seed(7);
      const OneDeviceStrategy strategy("GPU:0");
      const auto scope = strategy.scope();
      const Sequential model({layers::Dense(1, {.activation = "sigmoid"})});
      model.compile({.optimizer = "sgd",
                     .loss = "binary_crossentropy",
                     .metrics = {make()},
                     .run_eagerly = run_eagerly});
      const DeviceCounts before = device_counts();
      const History history = model.fit(x, y, {.batch_size = 8, .epochs = 2, .verbose = 0});
      replays = (device_counts() - before).replays;
      found.push_back(history.history.back().second);
    }
    EXPECT_EQ(replays, 16 - 3) << name;
    EXPECT_EQ(found[0], found[1]) << name;
  }
}

TEST_F(GpuCaptureFitTest, ClassWeightsAreRecordedAndThoseOfTheCall) {
  const Data3 data;
  const auto fit = [&](const Sequential& model) {
    FitOptions options{.batch_size = 10, .epochs = 2, .verbose = 0};
    options.class_weight = {{0, 2.0}, {2, 0.5}};
    model.fit(data.x, data.y, options);
    options.class_weight = {{0, 0.1}, {1, 3.0}};
    model.fit(data.x, data.y, options);
    options.class_weight = {};
    return model.fit(data.x, data.y, options);
  };
  const Result recorded = result_of(false, fit);
  expect_equal(recorded, result_of(true, fit));
  EXPECT_EQ(recorded.replays, 3 * (14 - 3));
}

// The lines of log that fit writes.
std::string log_of_fit(const distribute::Strategy& strategy, const CompileOptions& options) {
  utils::set_random_seed(7);
  const auto scope = strategy.scope();
  const Sequential model({layers::Dense(4), layers::Dense(1)});
  model.compile(options);
  ::testing::internal::CaptureStderr();
  model.fit(at::randn({64, 3}), at::randn({64, 1}), {.batch_size = 8, .epochs = 2, .verbose = 0});
  return ::testing::internal::GetCapturedStderr();
}

TEST_F(GpuCaptureFitTest, AStatefulLayerKeepsStepsFromBeingRecorded) {
  expect_same_on_gpu([](const distribute::Strategy&) {
    at::manual_seed(2);
    const Sequential model({layers::LSTM(4, {.stateful = true}), layers::Dense(1)});
    model.compile({.optimizer = optimizers::SGD({.learning_rate = 1e-2}), .loss = "mse"});
    const Tensor x = at::randn({48, 3, 2}), y = at::randn({48, 1});
    model.fit(x, y, {.batch_size = 4, .verbose = 0, .shuffle = false});
    auto all = values_of(model.weights());
    all.push_back(model.predict(x, {.batch_size = 4, .verbose = 0}).tensor().cpu());
    return all;
  });
}

TEST_F(GpuCaptureFitTest, OneLineSaysWhyStepsRunAsTheyAre) {
  const auto line = [](const std::string& why) {
    return HasSubstr("runs as it is, and not as a recorded graph: " + why);
  };
  const CompileOptions skipping{
      .optimizer = optimizers::Adam({.not_finite = optimizers::NotFinite::SKIP}), .loss = "mse"};
  const CompileOptions plain{.optimizer = "sgd", .loss = "mse"};
  const std::string log = log_of_fit(OneDeviceStrategy("GPU:0"), skipping);
  EXPECT_THAT(log, line("optimizer 'Adam' skips updates that are not finite"));
  EXPECT_EQ(log.find("as it is", log.find("as it is") + 1), std::string::npos) << log;
  EXPECT_THAT(log_of_fit(distribute::MirroredStrategy({"GPU:0", "GPU:1"}), plain),
              line("2 replicas run it together"));
  EXPECT_THAT(log_of_fit(OneDeviceStrategy("GPU:0"), plain), Not(HasSubstr("as it is")));
  EXPECT_THAT(log_of_fit(OneDeviceStrategy("CPU:0"), plain), Not(HasSubstr("as it is")));
}

}  // namespace
}  // namespace cohort::keras
