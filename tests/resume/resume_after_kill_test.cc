// Promise P4 with real kills: a training that is killed at any step, again and again, ends with the
// bits of one that was not. Model, slots, metric, input position and random numbers all count.
#include <ATen/ops/remainder.h>
#include <cohort/cohort.h>
#include <cohort/testing/multi_process_main.h>
#include <cohort/testing/multi_process_runner.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>

namespace cohort {
namespace {

namespace layers = keras::layers;
using std::chrono::seconds;
using testing::MultiProcessRunner;
using testing::TaskId;

constexpr int kSteps = 1000;
constexpr int64_t kBatch = 6;

data::Dataset samples() {
  const auto generator = random::RandomGenerator::from_seed(4);
  const Tensor inputs = generator.normal({50, 6});
  const Tensor labels = at::remainder(inputs.sum({1}).mul(3).floor(), 3).to(int64);
  return data::Dataset::from_tensor_slices(tuple(inputs, labels))
      .shuffle(50, {.seed = 2})
      .repeat()
      .batch(kBatch)
      .prefetch(2);
}

// The bytes of all values, as text: whoever compares them compares bits.
std::string fingerprint(const std::vector<Variable>& variables) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const Variable& variable : variables) {
    const Tensor value = variable.value().detach().contiguous();
    const auto* bytes = static_cast<const unsigned char*>(value.data_ptr());
    for (size_t i = 0; i < value.nbytes(); ++i) hash = (hash ^ bytes[i]) * 0x100000001b3u;
  }
  return std::to_string(hash);
}

// Trains up to kSteps from wherever the directory's latest checkpoint is; says each step that it
// begins. Returns the fingerprint of everything at the end.
std::string train_to_the_end(const std::vector<std::string>& arguments) {
  // What goes on is seeded otherwise: the checkpoint decides.
  random::set_seed(train::latest_checkpoint(arguments.at(0)) ? 99 : 8);
  config::set_logical_device_configuration("CPU", 2);
  const distribute::MirroredStrategy strategy;
  auto scope = strategy.scope();
  const keras::Sequential model(
      {layers::Dense(16, {.activation = "relu"}), layers::Dropout(0.2), layers::Dense(3)});
  const keras::optimizers::Adam optimizer({.learning_rate = 0.01});
  const keras::metrics::SparseCategoricalAccuracy accuracy;
  scope.close();
  auto input = strategy.experimental_distribute_dataset(samples()).iterator();
  const train::CheckpointManager manager(train::Checkpoint({{"model", model},
                                                            {"optimizer", optimizer},
                                                            {"accuracy", accuracy},
                                                            {"input", input},
                                                            {"random", strategy}}),
                                         arguments.at(0), {.max_to_keep = 2});
  manager.restore_or_initialize();

  const keras::losses::SparseCategoricalCrossentropy loss_object(
      {.from_logits = true, .reduction = keras::losses::Reduction::NONE});
  const auto step = [&](const Tensor& inputs, const Tensor& labels) {
    GradientTape tape;
    const Tensor logits = model(inputs, {.training = true});
    const Tensor loss =
        nn::compute_average_loss(loss_object(labels, logits), {.global_batch_size = kBatch});
    const auto variables = model.trainable_variables();
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables));
    accuracy.update_state(labels, logits);
  };
  for (int64_t i = optimizer.iterations().value().item<int64_t>(); i < kSteps; ++i) {
    std::printf("step %d\n", static_cast<int>(i));
    std::fflush(stdout);
    strategy.run(step, input.get_next());
    // Asynchronous saves at odd steps, others in between: both are killed.
    if (i % 7 == 0) manager.save({.checkpoint = {.enable_async = i % 2 == 1}});
  }
  manager.checkpoint().wait();
  std::vector<Variable> all = model.variables();
  for (const Variable& variable : optimizer.variables()) all.push_back(variable);
  for (const Variable& variable : accuracy.variables()) all.push_back(variable);
  return fingerprint(all);
}

struct ResumeAfterKill : ::testing::Test {
  ResumeAfterKill() {
    directory = ::testing::TempDir() + "resume_after_kill_test.XXXXXX";  // mkdtemp fills it in
    if (::mkdtemp(directory.data()) == nullptr) throw UnknownError("no temporary directory");
  }
  ~ResumeAfterKill() override { std::filesystem::remove_all(directory); }

  MultiProcessRunner runner(const std::string& name) {
    return MultiProcessRunner({.jobs = {{"worker", 1}},
                               .function = "train",
                               .arguments = {directory + "/" + name},
                               .deadline = seconds(100)});
  }

  std::string directory;
  const TaskId trainer = {"worker", 0};
};

TEST_F(ResumeAfterKill, EndsWithTheBitsOfATrainingThatWasNot) {
  auto calm = runner("calm");
  calm.start();
  const std::string expected = calm.join().at(trainer);

  auto killed = runner("killed");
  killed.start();
  for (const int later : {0, 1, 2, 3, 5, 8, 13, 30}) {
    // A restart begins at the latest checkpoint, wherever that is.
    const std::string first = killed.wait_for_line(trainer, "step \\d+", seconds(30));
    const int step = std::stoi(first.substr(first.find("step ") + 5)) + later;
    ASSERT_LT(step, kSteps / 2) << "the training is too short to be killed so often";
    killed.wait_for_line(trainer, "step " + std::to_string(step) + "\\b", seconds(30));
    killed.kill(trainer);
    killed.restart(trainer);
  }
  EXPECT_EQ(killed.join().at(trainer), expected);
}

int run_tests(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace cohort

int main(int argc, char** argv) {
  return cohort::testing::multi_process_main(argc, argv, {{"train", cohort::train_to_the_end}},
                                             cohort::run_tests);
}
