// fit with BackupAndRestore and real kills: a training that is killed at any moment, also in the
// middle of a save, ends with the bits of one that was not. Weights, optimizer, metrics, shuffling,
// dropout, the epoch, the step and the position in the data all count.
#include <ATen/ops/remainder.h>
#include <cohort/cohort.h>
#include <cohort/testing/multi_process_main.h>
#include <cohort/testing/multi_process_runner.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <sstream>
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

// arguments: the folder of the backup, the strategy, how many steps lie between backups (0: an
// epoch).
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

// Its metrics appear in the first step: those of several outputs, and one that a layer adds in
// training alone.
class Observed : public keras::Model {
 public:
  Observed() {
    track("a", a_);
    track("b", b_);
  }
  Structure call(const Structure& x, const keras::CallOptions& options) override {
    const Tensor hidden = a_(x.tensor());
    if (options.training.value()) add_metric(hidden.square(), "in_training");
    return tuple(hidden, b_(x.tensor()));
  }

 private:
  layers::LayerHandle a_ = layers::Dense(1, {.kernel_initializer = "ones"});
  layers::LayerHandle b_ = layers::Dense(1, {.kernel_initializer = "ones"});
};

// arguments: the folder of the backup, the strategy, at which batch of the second of three epochs
// every task is killed, where there is no backup yet (-1: none). Returns the names and numbers of
// the last two epochs.
std::string train_observed(const std::vector<std::string>& arguments) {
  const bool is_new = !train::latest_checkpoint(arguments.at(0));
  const distribute::Strategy strategy = strategy_of(arguments.at(1));
  const int64_t killed_at = is_new ? std::stoi(arguments.at(2)) : -1;
  auto scope = strategy.scope();
  const keras::ModelHandle model = std::make_shared<Observed>();
  model.compile({.optimizer = "sgd", .loss = "mse", .metrics = {"mae"}});
  const Tensor x = random::RandomGenerator::from_seed(4).normal({24, 6});
  int64_t epoch_now = 0;
  const keras::History history =
      model.fit(x, tuple(x.sum({1}, true), x.mean({1}, true)),
                {.batch_size = 4,
                 .epochs = 3,
                 .verbose = 0,
                 .callbacks = {callbacks::BackupAndRestore(arguments.at(0), {.save_freq = 1}),
                               callbacks::LambdaCallback(
                                   {.on_epoch_begin = [&](int64_t epoch) { epoch_now = epoch; },
                                    .on_train_batch_end =
                                        [&](int64_t batch, const keras::Logs&) {
                                          if (epoch_now == 1 && batch == killed_at)
                                            ::raise(SIGKILL);
                                        }})},
                 .shuffle = false});
  std::ostringstream text;
  text.precision(17);
  for (const auto& [name, values] : history.history) {
    text << name;
    for (size_t i = values.size() - 2; i < values.size(); ++i) text << ' ' << values[i];
    text << '\n';
  }
  return text.str();
}

// Tells when a save begins: its temporary files appear in the folder.
class SaveWatch {
 public:
  explicit SaveWatch(const std::string& folder)
      : folder_(folder), fd_(::inotify_init1(IN_CLOEXEC)) {
    std::filesystem::create_directories(folder);
    if (::inotify_add_watch(fd_, folder.c_str(), IN_CREATE) < 0) {
      throw UnknownError("the folder cannot be watched");
    }
  }
  ~SaveWatch() { ::close(fd_); }
  SaveWatch(const SaveWatch&) = delete;
  SaveWatch& operator=(const SaveWatch&) = delete;

  void wait_for_next(std::chrono::milliseconds timeout) const {
    while (is_ready(std::chrono::milliseconds(0))) take();  // what has begun before
    if (!is_ready(timeout)) throw DeadlineExceededError("no save has begun");
  }
  // Whether files of a save that has not ended are there.
  bool is_in_save() const {
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      if (entry.path().filename().string().starts_with(".cohort-tmp-")) return true;
    }
    return false;
  }

 private:
  bool is_ready(std::chrono::milliseconds timeout) const {
    pollfd one = {fd_, POLLIN, 0};
    return ::poll(&one, 1, static_cast<int>(timeout.count())) > 0;
  }
  void take() const {
    char events[4096];
    if (::read(fd_, events, sizeof(events)) < 0) throw UnknownError("no events to read");
  }

  const std::string folder_;
  const int fd_;
};

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
    SaveWatch saves(folder);
    int in_saves = 0;
    runner.start();
    for (int i = 0; i < kills; ++i) {
      // The first worker writes.
      const bool in_save = i % 2 == 1;
      const int task = in_save ? 0 : static_cast<int>(random() % static_cast<unsigned>(tasks));
      const TaskId victim = {"worker", task};
      // So many steps into its life, and then at a moment that nobody chooses, or when a save has
      // begun.
      for (auto steps = 1 + random() % 6; steps > 0; --steps) {
        runner.wait_for_line(victim, "step \\d+", seconds(60));
      }
      if (in_save) saves.wait_for_next(seconds(60));
      runner.kill(victim);
      if (saves.is_in_save()) ++in_saves;
      for (int other = 0; other < tasks; ++other) runner.restart({"worker", other});
    }
    if (kills > 0) {
      std::printf("%s: %d kills, %d of them in a save\n", strategy.c_str(), kills, in_saves);
      EXPECT_GT(in_saves, 0);
    }
    const std::map<TaskId, std::string> ends = runner.join();
    for (const auto& [task, end] : ends) EXPECT_EQ(end, ends.begin()->second);
    return ends.begin()->second;
  }

  // The same of train_observed, whose tasks all die once, or never.
  std::string run_observed(const std::string& strategy, int killed_at) const {
    const int tasks = strategy == "workers" ? 2 : 1;
    MultiProcessRunner runner({.jobs = {{"worker", tasks}},
                               .function = "train_observed",
                               .arguments = {directory + "/" + internal::str(strategy, killed_at),
                                             strategy, std::to_string(killed_at)},
                               .deadline = seconds(120)});
    runner.start();
    if (killed_at >= 0) {
      for (const testing::TaskOutcome& outcome : runner.wait_all()) {
        EXPECT_NE(outcome.code, Code::kOk);
      }
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

// In the middle of an epoch: the sums so far of metrics that the first step makes come back when
// they appear, by their names, in each task once.
TEST_F(FitResume, RestoresMetricsThatStepsMakeWhenTheyAppear) {
  for (const char* strategy : {"mirrored", "workers"}) {
    const std::string calm = run_observed(strategy, -1);
    for (const char* name : {"in_training", "output_1_loss", "output_2_mae"}) {
      EXPECT_THAT(calm, ::testing::HasSubstr(name));
    }
    EXPECT_EQ(run_observed(strategy, 3), calm) << strategy;
  }
}

int run_tests(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace cohort

int main(int argc, char** argv) {
  return cohort::testing::multi_process_main(
      argc, argv, {{"train", cohort::train_to_the_end}, {"train_observed", cohort::train_observed}},
      cohort::run_tests);
}
