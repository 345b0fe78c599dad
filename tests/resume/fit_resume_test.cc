// fit with BackupAndRestore and real kills: a training that is killed at any moment, also in the
// middle of a save, ends with the bits of one that was not. Weights, optimizer, metrics, shuffling,
// dropout, the epoch, the step and the position in the data all count.
#include <ATen/ops/remainder.h>
#include <cohort/cohort.h>
#include <cohort/testing/multi_process_main.h>
#include <cohort/testing/multi_process_runner.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <string>

#include "cohort/cluster/testing_detection.h"

namespace cohort {
namespace {

namespace callbacks = keras::callbacks;
namespace layers = keras::layers;
using std::chrono::seconds;
using testing::MultiProcessRunner;
using testing::TaskId;

constexpr int kEpochs = 40;
constexpr int64_t kBatch = 6;

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

// Of "one" device, "mirrored" over two, or two "workers" with one each.
distribute::Strategy strategy_of(const std::string& kind) {
  if (kind == "workers") {
    return distribute::MultiWorkerMirroredStrategy(
        {.server_options = {.keepalive_time = seconds(1),
                            .keepalive_timeout = seconds(1),
                            .start_timeout = seconds(40),
                            .heartbeat_interval = std::chrono::milliseconds(500),
                            .heartbeat_timeout = seconds(2)}});
  }
  config::set_logical_device_configuration("CPU", kind == "one" ? 1 : 2);
  if (kind == "one") return distribute::OneDeviceStrategy("CPU:0");
  return distribute::MirroredStrategy();
}

// arguments: the folder of the backup, the strategy, how many steps lie between backups (0: an epoch).
std::string train_to_the_end(const std::vector<std::string>& arguments) {
  // What goes on is seeded otherwise: the backup decides.
  random::set_seed(train::latest_checkpoint(arguments.at(0)) ? 99 : 8);
  const distribute::Strategy strategy = strategy_of(arguments.at(1));
  auto scope = strategy.scope();
  const keras::Sequential model(
      {layers::Dense(16, {.activation = "relu"}), layers::Dropout(0.2), layers::Dense(3)});
  model.compile({.optimizer = keras::optimizers::Adam({.learning_rate = 0.01}),
                 .loss = keras::losses::SparseCategoricalCrossentropy({.from_logits = true}),
                 .metrics = {"accuracy"}});
  const auto generator = random::RandomGenerator::from_seed(4);
  const Tensor inputs = generator.normal({50, 6});
  const Tensor labels = at::remainder(inputs.sum({1}).mul(3).floor(), 3).to(int64);
  const int save_freq = std::stoi(arguments.at(2));
  const keras::History history = model.fit(
      inputs, labels,
      {.batch_size = kBatch,
       .epochs = kEpochs,
       .verbose = 0,
       .callbacks = {
           callbacks::LambdaCallback({.on_train_batch_end =
                                          [](int64_t batch, const keras::Logs&) {
                                            std::printf("step %d\n", static_cast<int>(batch));
                                            std::fflush(stdout);
                                          }}),
           callbacks::BackupAndRestore(
               arguments.at(0), {.save_freq = save_freq == 0 ? callbacks::SaveFreq("epoch")
                                                             : callbacks::SaveFreq(save_freq)})}});
  std::vector<Variable> all = model.variables();
  for (const Variable& variable : model.optimizer().variables()) all.push_back(variable);
  return fingerprint(all) + " " + std::to_string(history["loss"].back());
}

struct FitResume : ::testing::Test {
  FitResume() {
    directory = ::testing::TempDir() + "fit_resume_test.XXXXXX";  // mkdtemp fills it in
    if (::mkdtemp(directory.data()) == nullptr) throw UnknownError("no temporary directory");
  }
  ~FitResume() override { std::filesystem::remove_all(directory); }

  // What the trainings end with: the same in all tasks.
  std::string run(const std::string& strategy, int save_freq, int kills) {
    const std::string folder =
        directory + "/" + internal::str(strategy, "-", save_freq, "-", kills);
    const int tasks = strategy == "workers" ? 2 : 1;
    MultiProcessRunner runner({.jobs = {{"worker", tasks}},
                               .function = "train",
                               .arguments = {folder, strategy, std::to_string(save_freq)},
                               .deadline = seconds(300)});
    std::mt19937 random(static_cast<unsigned>(strategy.size()) + static_cast<unsigned>(save_freq));
    runner.start();
    for (int i = 0; i < kills; ++i) {
      const TaskId victim = {"worker", static_cast<int>(random() % static_cast<unsigned>(tasks))};
      // So many steps into its life, and then at a moment that nobody chooses: in a step, in a save.
      for (auto steps = 1 + random() % 6; steps > 0; --steps) {
        runner.wait_for_line(victim, "step \\d+", seconds(60));
      }
      runner.kill(victim);
      for (int task = 0; task < tasks; ++task) runner.restart({"worker", task});
    }
    const std::map<TaskId, std::string> ends = runner.join();
    for (const auto& [task, end] : ends) EXPECT_EQ(end, ends.begin()->second);
    return ends.begin()->second;
  }

  std::string directory;
};

TEST_F(FitResume, OnOneDeviceEndsWithTheBitsOfATrainingThatWasNotKilled) {
  EXPECT_EQ(run("one", 1, detection::repetitions(4)), run("one", 1, 0));
}

TEST_F(FitResume, OnTwoReplicasEndsWithTheBitsOfATrainingThatWasNotKilled) {
  EXPECT_EQ(run("mirrored", 2, detection::repetitions(4)), run("mirrored", 2, 0));
}

// Either worker dies, and both start again.
TEST_F(FitResume, OfTwoWorkersEndsWithTheBitsOfATrainingThatWasNotKilled) {
  EXPECT_EQ(run("workers", 2, detection::repetitions(4)), run("workers", 2, 0));
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
