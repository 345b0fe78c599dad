// What a program that makes one model after another leaves on ps tasks of real processes: nothing.
#include <cohort/testing/multi_process_main.h>
#include <cohort/testing/multi_process_runner.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <optional>
#include <regex>
#include <string>
#include <thread>

#include "cohort/core/testing_folder.h"
#include "cohort/parameter_server/parameter_server_core.h"
#include "parameter_server_counting.h"
#include "testing_status.h"

namespace cohort::parameter_server_faults {
namespace {

using testing::MultiProcessRunner;

constexpr int kModels = 8;
constexpr int64_t kMostBytesOfOne = 3'500'000;
const TaskId kChief{"chief", 0};

// A model of 1 MB, with twice as much beside it that Adam keeps. One step: in less time than passes
// between looks at what is to be freed.
void try_one(const ParameterServerStrategy& strategy) {
  const auto scope = strategy.scope();
  const keras::Sequential model({keras::layers::Dense(250, {.use_bias = false})});
  model.compile({.optimizer = keras::optimizers::Adam(), .loss = "mse"});
  model.fit(ones({64, 1000}), zeros({64, 250}), {.batch_size = 64, .verbose = 0});
}

// Argument: a directory, in which "killed" lets it go on after the second model, "back" after the
// fifth, and "end" ends it.
std::string search(const Arguments& arguments) {
  const TFConfigClusterResolver resolver;
  const ParameterServerStrategy strategy(resolver, {.timeout = 20s, .server_options = quick()});
  auto scope = strategy.scope();
  const Variable stays(zeros({10}), {.name = "stays"});
  scope.close();
  const double until = now_ms() + 100'000;
  const auto wait_until = [&](auto condition) {
    while (!condition() && now_ms() < until) std::this_thread::sleep_for(1ms);
    return condition();
  };
  const auto wait_for = [&](const char* file) {
    wait_until([&] { return std::filesystem::exists(arguments[0] + "/" + file); });
  };
  const bool is_chief = resolver.task_type() == "chief";
  for (int i = 0; i < kModels; ++i) {
    try_one(strategy);
    // The last one stays until the tasks' programs have come to the next.
    const auto& store = strategy.parameter_server_core()->variables()->store();
    if (is_chief && !wait_until([&] { return store.load(0).bytes < 2 * kMostBytesOfOne; })) {
      throw InternalError("there are " + std::to_string(store.load(0).bytes) + " bytes");
    }
    std::printf("tried %d\n", i);
    std::fflush(stdout);
    if (is_chief && i == 1) wait_for("killed");
    if (is_chief && i == 4) wait_for("back");
  }
  if (is_chief) wait_for("end");
  return "tried all";
}

// The chief runs no step, so that its optimizer has no slots. Returns what the ps task comes to
// hold without it.
std::string train_elsewhere(const Arguments&) {
  const TFConfigClusterResolver resolver;
  const ParameterServerStrategy strategy(resolver, {.timeout = 20s, .server_options = quick()});
  auto scope = strategy.scope();
  std::optional<Variable> weights = Variable(ones({1000, 250}), {.name = "weights"});
  std::optional<keras::optimizers::Adam> adam = keras::optimizers::Adam();
  scope.close();
  const auto step = strategy.function("step", [&] {
    strategy.run([&] {
      GradientTape tape;
      adam->minimize((weights->value() * weights->value()).sum(), {*weights}, tape);
    });
  });
  if (resolver.task_type() != "chief") {
    Server server(resolver, quick());
    return std::to_string(server.join());
  }
  const ClusterCoordinator coordinator(strategy);
  for (int i = 0; i < 4; ++i) coordinator.schedule(step);
  coordinator.join();
  const auto& store = strategy.parameter_server_core()->variables()->store();
  const int64_t with_slots = store.load(0).bytes;
  if (with_slots < 3'000'000) throw InternalError("there are no slots");
  weights.reset();
  adam.reset();
  const double until = now_ms() + 30'000;
  while (store.load(0).bytes > 0 && now_ms() < until) std::this_thread::sleep_for(1ms);
  return std::to_string(store.load(0).bytes);
}

class ParameterServerMemory : public ::testing::Test {
 protected:
  MultiProcessRunner runner(const char* function = "search") const {
    return MultiProcessRunner({.jobs = {{"chief", 1}, {"worker", 2}, {"ps", 1}},
                               .function = function,
                               .arguments = {folder_.path().string()},
                               .deadline = 120s});
  }
  void touch(const char* file) const { std::ofstream(folder_.path() / file).flush(); }
  // When all models have ended, the ps task comes to have what stays.
  void expect_the_rest_goes(MultiProcessRunner& runner) const {
    const std::regex freed(" variable bytes 40(,|$)");
    const double until = now_ms() + 30'000;
    std::string line;
    do {
      line = line_of(status_of(runner.address(kChief)), "/job:ps/task:0");
    } while (!std::regex_search(line, freed) && now_ms() < until);
    EXPECT_TRUE(std::regex_search(line, freed)) << line;
    touch("end");
    for (const auto& [task, found] : runner.join()) EXPECT_EQ(found, "tried all") << task;
  }

 private:
  internal::TemporaryFolder folder_;
};

TEST_F(ParameterServerMemory, ModelsThatHaveEndedTakeNone) {
  MultiProcessRunner tasks = runner();
  touch("killed");
  touch("back");
  tasks.start();
  tasks.wait_for_line(kChief, "tried 7", kPatience);
  expect_the_rest_goes(tasks);
}

// Its program makes all of the models again, and frees none of those of others.
TEST_F(ParameterServerMemory, AlsoWhereAWorkerComesBackMeanwhile) {
  MultiProcessRunner tasks = runner();
  tasks.start();
  tasks.wait_for_line(kChief, "tried 1", kPatience);
  tasks.kill({"worker", 1});
  touch("killed");
  tasks.wait_for_line(kChief, "tried 3", kPatience);  // without it
  tasks.restart({"worker", 1});
  tasks.wait_for_line({"worker", 1}, "tried 4", kPatience);
  touch("back");
  tasks.wait_for_line(kChief, "tried 7", kPatience);
  expect_the_rest_goes(tasks);
}

TEST_F(ParameterServerMemory, SlotsThatOnlyWorkersHaveMadeGoWithTheirVariable) {
  MultiProcessRunner tasks = runner("train_elsewhere");
  tasks.start();
  EXPECT_EQ(tasks.join().at(kChief), "0");
}

}  // namespace
}  // namespace cohort::parameter_server_faults

int main(int argc, char** argv) {
  using namespace cohort::parameter_server_faults;
  return cohort::testing::multi_process_main(
      argc, argv, {{"search", search}, {"train_elsewhere", train_elsewhere}},
      [](int count, char** arguments) {
        ::testing::InitGoogleTest(&count, arguments);
        return RUN_ALL_TESTS();
      });
}
