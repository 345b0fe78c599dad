// fit in two real processes: the curves of two replicas of one process, and those of a loop of
// one's own.
#include <ATen/ops/remainder.h>
#include <cohort/cohort.h>
#include <cohort/testing/multi_process_main.h>
#include <cohort/testing/multi_process_runner.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

namespace cohort {
namespace {

namespace layers = keras::layers;
using std::chrono::seconds;
using testing::MultiProcessRunner;

constexpr int kEpochs = 3;
constexpr int64_t kBatch = 8;

data::Dataset batches(DType dtype) {
  const auto generator = random::RandomGenerator::from_seed(4);
  const Tensor inputs = generator.normal({50, 6}, {.dtype = float64});
  const Tensor labels = at::remainder(inputs.sum({1}).mul(3).floor(), 3).to(int64);
  data::Options options;
  options.experimental_distribute.auto_shard_policy = data::AutoShardPolicy::DATA;
  return data::Dataset::from_tensor_slices(tuple(inputs.to(dtype), labels))
      .batch(kBatch)
      .with_options(options);
}

keras::Sequential make_model() {
  return keras::Sequential(
      {layers::Dense(16, {.activation = "relu",
                          .kernel_initializer = keras::initializers::GlorotUniform({.seed = 1}),
                          .kernel_regularizer = keras::regularizers::L2(1e-3)}),
       layers::Dense(3, {.kernel_initializer = keras::initializers::GlorotUniform({.seed = 2})})});
}

keras::losses::SparseCategoricalCrossentropy make_loss(keras::losses::Reduction reduction) {
  return keras::losses::SparseCategoricalCrossentropy(
      {.from_logits = true, .reduction = reduction});
}

std::vector<double> by_fit(const distribute::Strategy& strategy, DType dtype) {
  const auto scope = strategy.scope();
  const keras::Sequential model = make_model();
  model.compile({.optimizer = keras::optimizers::Adam({.learning_rate = 0.01}),
                 .loss = make_loss(keras::losses::Reduction::AUTO)});
  return model.fit(batches(dtype), {.epochs = kEpochs, .verbose = 0})["loss"];
}

// Guide 004's loop.
std::vector<double> by_hand(const distribute::Strategy& strategy, DType dtype) {
  const auto scope = strategy.scope();
  const keras::Sequential model = make_model();
  const keras::optimizers::Adam optimizer({.learning_rate = 0.01});
  const keras::metrics::Mean mean_loss;
  const auto loss_object = make_loss(keras::losses::Reduction::NONE);
  const auto step = [&](const Tensor& inputs, const Tensor& labels) {
    GradientTape tape;
    const Tensor losses = loss_object(labels, model(inputs, {.training = true}));
    const Tensor penalty = add_n(model.losses());
    const Tensor loss = nn::compute_average_loss(losses) + nn::scale_regularization_loss(penalty);
    optimizer.minimize(loss, model.trainable_variables(), tape);
    mean_loss.update_state(losses + penalty.detach());
  };
  const auto dataset = strategy.experimental_distribute_dataset(batches(dtype));
  std::vector<double> curve;
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    mean_loss.reset_state();
    for (const auto& batch : dataset) strategy.run(step, batch);
    curve.push_back(mean_loss.result());
  }
  return curve;
}

std::string text_of(const std::vector<double>& curve) {
  std::ostringstream text;
  text.precision(17);
  for (const double loss : curve) text << loss << ' ';
  return text.str();
}

std::vector<double> numbers_of(const std::string& text) {
  std::istringstream words(text);
  std::vector<double> numbers;
  for (double number; words >> number;) numbers.push_back(number);
  return numbers;
}

// arguments: the dtype. fit's losses, then those of the loop.
std::string train_as_worker(const std::vector<std::string>& arguments) {
  keras::backend::set_floatx(arguments.at(0));
  const DType dtype = arguments.at(0) == "float64" ? float64 : float32;
  const distribute::MultiWorkerMirroredStrategy strategy(
      {.server_options = {.start_timeout = seconds(40)}});
  return text_of(by_fit(strategy, dtype)) + text_of(by_hand(strategy, dtype));
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected,
                 double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_LT(std::abs(found[i] - expected[i]), tolerance * expected[i]) << "number " << i;
  }
}

struct FitMultiWorker : ::testing::TestWithParam<const char*> {};

TEST_P(FitMultiWorker, LearnsAsOneProcessWithAsManyReplicas) {
  const std::string name = GetParam();
  const DType dtype = name == "float64" ? float64 : float32;
  const double tolerance = name == "float64" ? 1e-9 : 1e-3;
  MultiProcessRunner runner({.jobs = {{"worker", 2}},
                             .function = "train",
                             .arguments = {name},
                             .deadline = seconds(100)});
  runner.start();
  config::set_logical_device_configuration("CPU", 2);
  keras::backend::set_floatx(name);
  const distribute::MirroredStrategy mirrored;
  const distribute::CentralStorageStrategy central(mirrored.extended().worker_devices());
  std::vector<double> expected = by_hand(mirrored, dtype);
  expect_near(by_fit(mirrored, dtype), expected, tolerance);
  expect_near(by_fit(central, dtype), expected, tolerance);
  keras::backend::set_floatx("float32");
  EXPECT_LT(expected.back(), expected.front());
  const std::vector<double> once = expected;
  expected.insert(expected.end(), once.begin(), once.end());
  for (const auto& [task, curves] : runner.join()) {
    expect_near(numbers_of(curves), expected, tolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(Of, FitMultiWorker, ::testing::Values("float32", "float64"));

int run_tests(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace cohort

int main(int argc, char** argv) {
  return cohort::testing::multi_process_main(argc, argv, {{"train", cohort::train_as_worker}},
                                             cohort::run_tests);
}
