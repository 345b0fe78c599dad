// Here a function says that the machine will be taken away; tests/preemption sends real signals.
#include "cohort/distribute/preemption/preemption_checkpoint_handler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <string>
#include <thread>

#include "cohort/core/files/simulated_file_system.h"
#include "cohort/core/testing_fork.h"
#include "cohort/core/threads/testing_threads.h"
#include "cohort/core/threads/thread_sanitizer.h"
#include "cohort/distribute/preemption/testing_preemption.h"
#include "cohort/distribute/testing_errors.h"
#include "cohort/distribute/testing_numbers.h"
#include "cohort/train/checkpoint.h"
#include "cohort/train/checkpoint_impl.h"

namespace cohort::distribute {
namespace {

using experimental::PreemptionCheckpointHandler;
using experimental::TerminationConfig;
using ::testing::HasSubstr;

TEST_F(Preemption, SavesAndExitsAndGoesOnWhereItWas) {
  const Variable v(number(0), {.name = "v"});
  int64_t calls = 0;
  {
    PreemptionCheckpointHandler handler(
        alone, train::Checkpoint({{"v", v}}),
        {.checkpoint_dir = directory, .termination_config = config()});
    EXPECT_EQ(handler.run([](int a, int b) { return a + b; }, 2, 3), 5);
    EXPECT_EQ(handler.total_run_calls(), 1);
    v.assign(1.);
    calls = run_until_exit(handler, [&] {
      v.assign_add(1);
      if (handler.total_run_calls() == 5) taken_away = true;
    });
    EXPECT_GE(calls, 6);
    EXPECT_EQ(v.value().item<double>(), static_cast<double>(calls));
    EXPECT_EQ(checkpoints(), 1);
    handler.run([&] { v.assign(-1.); });  // exit_fn has returned control: it goes on
    EXPECT_EQ(checkpoints(), 1);
  }
  taken_away = false;
  const Variable again(number(0), {.name = "v"});
  const train::CheckpointManager manager(train::Checkpoint({{"v", again}}), directory,
                                         {.max_to_keep = 1});
  PreemptionCheckpointHandler handler(alone, manager, {.termination_config = config()});
  EXPECT_EQ(handler.total_run_calls(), calls);
  EXPECT_EQ(again.value().item<double>(), static_cast<double>(calls));
}

TEST_F(Preemption, SavesAtTheEndOfAStepThatIsNotGivenToIt) {
  const Variable v(number(0), {.name = "v"});
  bool has_ended = false;
  TerminationConfig termination = config();
  termination.exit_fn = [&] { has_ended = true; };
  PreemptionCheckpointHandler handler(
      alone, train::Checkpoint({{"v", v}}),
      {.checkpoint_dir = directory, .termination_config = termination});
  int64_t steps = 0;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!has_ended && std::chrono::steady_clock::now() < deadline) {
    v.assign_add(1);
    if (++steps == 3) taken_away = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // a step, while the watcher looks
    handler.save_checkpoint_if_preempted();
    EXPECT_EQ(handler.total_run_calls(), steps);
  }
  EXPECT_TRUE(has_ended);
  EXPECT_EQ(checkpoints(), 1);
  taken_away = false;
  const Variable again(number(0), {.name = "v"});
  PreemptionCheckpointHandler next(alone, train::Checkpoint({{"v", again}}),
                                   {.checkpoint_dir = directory, .termination_config = config()});
  EXPECT_EQ(next.total_run_calls(), steps);
  EXPECT_EQ(again.value().item<double>(), static_cast<double>(steps));
}

TEST_F(Preemption, AChildOfForkHasNoPartInIt) {
  const Variable v(number(0), {.name = "v"});
  auto handler = std::make_unique<PreemptionCheckpointHandler>(
      alone, train::Checkpoint({{"v", v}}),
      experimental::PreemptionCheckpointOptions{
          .checkpoint_dir = directory, .termination_config = {.exit_fn = [] { throw Exited(); }}});
  EXPECT_THAT(internal::in_forked_child(
                  [&] { return thrown<FailedPreconditionError>([&] { handler->run([] {}); }); }),
              HasSubstr("a PreemptionCheckpointHandler was made before this process was forked"));
  EXPECT_EQ(internal::in_forked_child([&] {
              handler.reset();
              return std::string("released");
            }),
            "released");
#ifndef COHORT_THREAD_SANITIZER  // which calls no handlers in children of processes with threads
  EXPECT_EQ(internal::in_forked_child([] {
              ::raise(SIGTERM);
              return std::string("lives");
            }),
            "killed by signal 15");
#endif
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // in which nobody asks
  for (int call = 0; call < 10; ++call) handler->run([] {});
  EXPECT_EQ(checkpoints(), 0);
  ::kill(::getpid(), SIGTERM);
  EXPECT_GT(run_until_exit(*handler, [] {}), 10);
  EXPECT_EQ(checkpoints(), 1);
}

TEST_F(Preemption, WithoutThreadsItIsNotMade) {
  const Variable v(number(0), {.name = "v"});
  const train::CheckpointManager manager(train::Checkpoint({{"v", v}}), directory,
                                         {.max_to_keep = 1});
  const internal::NoMoreThreads none;
  EXPECT_THAT(thrown<ResourceExhaustedError>([&] {
                PreemptionCheckpointHandler(alone, manager, {.termination_config = config()});
              }),
              HasSubstr("no thread to wait for the end of this machine with"));
}

TEST_F(Preemption, SaveFnTakesThePlaceOfTheSave) {
  const Variable v(number(0), {.name = "v"});
  const train::CheckpointManager manager(train::Checkpoint({{"v", v}}), directory,
                                         {.max_to_keep = 5});
  int saves = 0;
  TerminationConfig termination = config();
  termination.save_fn = [&] {
    if (++saves == 1) throw ResourceExhaustedError("no room yet");
    manager.save({.checkpoint_number = 70, .check_interval = false});
  };
  int64_t calls = 0;
  {
    PreemptionCheckpointHandler handler(alone, manager, {.termination_config = termination});
    const auto step = [&] { v.assign_add(1); };
    taken_away = true;
    EXPECT_THAT(thrown<ResourceExhaustedError>([&] {
                  while (true) handler.run(step);
                }),
                HasSubstr("no room yet"));
    EXPECT_EQ(checkpoints(), 0);
    calls = handler.total_run_calls();
    EXPECT_EQ(run_until_exit(handler, step), ++calls);  // the next call saves
    EXPECT_EQ(saves, 2);
    EXPECT_THAT(manager.latest_checkpoint().value(), HasSubstr("ckpt-70"));
  }
  taken_away = false;
  const Variable again(number(0), {.name = "v"});
  PreemptionCheckpointHandler handler(
      alone, train::Checkpoint({{"v", again}}),
      {.checkpoint_dir = directory, .termination_config = config()});
  EXPECT_EQ(handler.total_run_calls(), calls);
  EXPECT_EQ(again.value().item<double>(), static_cast<double>(calls));
}

TEST_F(Preemption, TheGracePeriodMayBeAsLongAsItGoes) {
  const Variable v(number(0), {.name = "v"});
  TerminationConfig termination = config();
  termination.grace_period = std::chrono::milliseconds::max();
  PreemptionCheckpointHandler handler(
      alone, train::Checkpoint({{"v", v}}),
      {.checkpoint_dir = directory, .termination_config = termination});
  taken_away = true;
  while (checkpoints() == 0) handler.run([] {});
  for (int call = 0; call < 10'000; ++call) handler.run([] {});
  EXPECT_EQ(checkpoints(), 1);
}

TEST_F(Preemption, WithAGracePeriodItSavesGoesOnAndSavesAgain) {
  const Variable v(number(0), {.name = "v"});
  const train::CheckpointManager manager(train::Checkpoint({{"v", v}}), directory,
                                         {.max_to_keep = 5});
  TerminationConfig termination = config();
  termination.grace_period = std::chrono::milliseconds(300);
  PreemptionCheckpointHandler handler(alone, manager, {.termination_config = termination});
  int64_t at_first_save = 0;
  taken_away = true;
  const int64_t calls = run_until_exit(handler, [&] {
    v.assign_add(1);
    if (at_first_save == 0 && checkpoints() == 1) at_first_save = handler.total_run_calls();
  });
  EXPECT_GT(at_first_save, 0);
  EXPECT_GT(calls, at_first_save);
  EXPECT_EQ(checkpoints(), 2);
  EXPECT_EQ(v.value().item<double>(), static_cast<double>(calls));
}

// The call that has saved is over in what is restored.
TEST_F(Preemption, AFunctionMaySaveByItself) {
  const auto resume = [&](const Variable& steps, const TerminationConfig& termination) {
    const train::CheckpointManager manager(train::Checkpoint({{"steps", steps}}), directory,
                                           {.checkpoint_interval = 1, .step_counter = steps});
    PreemptionCheckpointHandler handler(alone, manager, {.termination_config = termination});
    EXPECT_EQ(handler.total_run_calls(), steps.value().item<int64_t>());
    if (handler.total_run_calls() > 0) return handler.total_run_calls();
    return run_until_exit(handler, [&] {
      steps.assign_add(1);
      manager.save();
      taken_away = true;
    });
  };
  const int64_t calls = resume(Variable(0, {.name = "steps", .dtype = int64}), config());
  EXPECT_EQ(resume(Variable(0, {.name = "steps", .dtype = int64}), {}), calls);
}

TEST_F(Preemption, ChecksWhatItGets) {
  const Variable v(number(0), {.name = "v"});
  const auto make = [&](const cluster_resolver::ClusterResolver& resolver,
                        experimental::PreemptionCheckpointOptions options) {
    return refused([&] {
      PreemptionCheckpointHandler(resolver, train::Checkpoint({{"v", v}}), std::move(options));
    });
  };
  EXPECT_THAT(make(alone, {}), HasSubstr("needs a checkpoint_dir"));
  EXPECT_THAT(make(alone, {.checkpoint_dir = directory,
                           .termination_config = {.grace_period = std::chrono::milliseconds(-1)}}),
              HasSubstr("grace_period is -1 ms"));
  const train::CheckpointManager manager(train::Checkpoint({{"v", v}}), directory);
  EXPECT_THAT(refused([&] {
                PreemptionCheckpointHandler(alone, manager, {.checkpoint_dir = "elsewhere"});
              }),
              HasSubstr("'elsewhere'"));
}

TEST_F(Preemption, AnErrorOfTheWatcherIsThatOfTheNextCall) {
  const Variable v(number(0), {.name = "v"});
  PreemptionCheckpointHandler handler(
      alone, train::Checkpoint({{"v", v}}),
      {.checkpoint_dir = directory, .termination_config = {.termination_watcher_fn = []() -> bool {
                                      throw NotFoundError("no metadata server");
                                    }}});
  EXPECT_THAT(thrown<NotFoundError>([&] {
                while (true) handler.run([] {});
              }),
              HasSubstr("no metadata server"));
}

// The program exits when the checkpoint is there.
TEST_F(Preemption, ASaveFnMaySaveInTheBackground) {
  const Variable v(number(0), {.name = "v"});
  internal::SimulatedFileSystem files;
  const train::Checkpoint checkpoint({{"v", v}});
  checkpoint.impl().use(files);
  const train::CheckpointManager manager(checkpoint, "dir");
  TerminationConfig termination = config();
  termination.save_fn = [&] {
    manager.save({.check_interval = false, .checkpoint = {.enable_async = true}});
  };
  PreemptionCheckpointHandler handler(alone, manager, {.termination_config = termination});
  files.set_capacity(10);
  taken_away = true;
  EXPECT_THROW(while (true) handler.run([] {}), ResourceExhaustedError);
  files.set_capacity(1 << 20);
  run_until_exit(handler, [] {});
  EXPECT_EQ(manager.latest_checkpoint(), "dir/ckpt-2");
}

}  // namespace
}  // namespace cohort::distribute
