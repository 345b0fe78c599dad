// Here a function says that the machine will be taken away; tests/preemption sends real signals.
#include "cohort/distribute/preemption_checkpoint_handler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "cohort/cluster/resolvers/simple_cluster_resolver.h"
#include "cohort/core/files/simulated_file_system.h"
#include "cohort/core/testing_fork.h"
#include "cohort/core/testing_threads.h"
#include "cohort/core/thread_sanitizer.h"
#include "cohort/data/testing_files.h"
#include "cohort/distribute/preemption_handler_impl.h"
#include "cohort/distribute/testing_errors.h"
#include "cohort/distribute/testing_numbers.h"
#include "cohort/distribute/testing_servers.h"
#include "cohort/distribute/testing_tasks.h"
#include "cohort/train/checkpoint_impl.h"

namespace cohort::distribute {
namespace {

using cluster_resolver::SimpleClusterResolver;
using experimental::PreemptionCheckpointHandler;
using experimental::TerminationConfig;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Exited {};  // what exit_fn throws, so that a test goes on

struct Preemption : data::FilesTest {
  TerminationConfig config() {
    return {.termination_watcher_fn = [this] { return taken_away.load(); },
            .exit_fn = [] { throw Exited(); }};
  }
  // How many checkpoints there are.
  int64_t checkpoints() const {
    int64_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      count += entry.path().extension() == ".index" ? 1 : 0;
    }
    return count;
  }

  const SimpleClusterResolver alone{train::ClusterSpec()};
  std::atomic<bool> taken_away{false};
};

// Runs `step` until the program is told to exit, which it is to be after `calls` calls or a little
// later; returns the number of calls.
int64_t run_until_exit(PreemptionCheckpointHandler& handler, const std::function<void()>& step) {
  try {
    while (true) handler.run(step);
  } catch (const Exited&) {
    return handler.total_run_calls();
  }
}

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

// One task of three is told; all save one checkpoint after the same call, to which every replica has
// contributed, and exit.
TEST_F(Preemption, AllTasksSaveTogetherAfterTheSameCall) {
  for (int told = 0; told < 3; ++told) {
    std::filesystem::remove_all(directory);
    std::filesystem::create_directory(directory);
    WorkerServers servers(3);
    std::vector<int64_t> calls(3);
    std::atomic<int> own_saves{0};
    run_all_tasks(3, 2, [&](const Strategy& strategy, int task) {
      std::optional<Scope> scope(strategy.core());
      const Variable v(number(0), {.name = "v", .aggregation = VariableAggregation::SUM});
      scope.reset();
      std::atomic<bool> own{false};
      const train::CheckpointManager manager(train::Checkpoint({{"v", v}}), directory,
                                             {.max_to_keep = 1});
      TerminationConfig termination{.termination_watcher_fn = [&] { return own.load(); },
                                    .exit_fn = [] { throw Exited(); }};
      if (told == 1) {
        termination.save_fn = [&] {
          ++own_saves;
          manager.save();
        };
      }
      PreemptionCheckpointHandler handler(
          alone, manager,
          {.termination_config = std::move(termination), .server = &servers.server(task)});
      own = task == told;
      calls[static_cast<size_t>(task)] =
          run_until_exit(handler, [&] { strategy.run([&] { v.assign_add(number(1)); }); });
      EXPECT_EQ(v.value().item<double>(), 6. * static_cast<double>(handler.total_run_calls()));
    });
    EXPECT_THAT(calls, Each(calls[0]));
    EXPECT_EQ(checkpoints(), 1);
    EXPECT_EQ(own_saves, told == 1 ? 3 : 0);
    const Variable v(number(0), {.name = "v"});
    train::Checkpoint({{"v", v}}).restore(train::latest_checkpoint(directory)).expect_partial();
    EXPECT_EQ(v.value().item<double>(), 6. * static_cast<double>(calls[0]));
  }
}

// A save_fn that saves as a group, in three tasks, of which one throws before it comes to that: all get its error, and
// the next call saves.
TEST_F(Preemption, ASaveFnThatThrowsInOneTaskEndsTheSaveInWhichTheOthersWaitForIt) {
  WorkerServers servers(3);
  std::vector<int64_t> calls(3);
  run_all_tasks(3, 1, [&](const Strategy& strategy, int task) {
    std::optional<Scope> scope(strategy.core());
    const Variable v(number(0), {.name = "v", .aggregation = VariableAggregation::SUM});
    scope.reset();
    const train::CheckpointManager manager(train::Checkpoint({{"v", v}}), directory,
                                           {.max_to_keep = 1});
    bool has_room = task != 1;
    TerminationConfig termination{.termination_watcher_fn = [=] { return task == 0; },
                                  .exit_fn = [] { throw Exited(); },
                                  .save_fn =
                                      [&] {
                                        if (!std::exchange(has_room, true)) {
                                          throw ResourceExhaustedError("no room yet");
                                        }
                                        manager.save({.check_interval = false});
                                      }};
    PreemptionCheckpointHandler handler(
        alone, manager,
        {.termination_config = std::move(termination), .server = &servers.server(task)});
    const auto step = [&] { strategy.run([&] { v.assign_add(number(1)); }); };
    EXPECT_EQ(thrown<ResourceExhaustedError>([&] {
                while (true) handler.run(step);
              }),
              task == 1 ? "no room yet" : "save_fn of /job:worker/task:1 failed: no room yet");
    EXPECT_EQ(checkpoints(), 0);
    const int64_t failed_at = handler.total_run_calls();
    EXPECT_EQ(calls[static_cast<size_t>(task)] = run_until_exit(handler, step), failed_at + 1);
  });
  EXPECT_THAT(calls, Each(calls[0]));
  EXPECT_EQ(checkpoints(), 1);
  const Variable v(number(0), {.name = "v"});
  train::Checkpoint({{"v", v}}).restore(train::latest_checkpoint(directory)).expect_partial();
  EXPECT_EQ(v.value().item<double>(), 3. * static_cast<double>(calls[0]));
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

// The handler of one of the tasks, which saves by itself.
std::unique_ptr<internal::PreemptionHandlerImpl> make_handler(WorkerServers& servers, int task,
                                                              std::chrono::milliseconds patience,
                                                              const std::string& directory,
                                                              TerminationConfig termination) {
  const Variable v(number(0), {.name = "v"});
  return std::make_unique<internal::PreemptionHandlerImpl>(
      internal::StopGroup{.cluster = &servers.coordination(task),
                          .name = "test",
                          .tasks = servers.tasks(),
                          .self = static_cast<size_t>(task),
                          .patience = patience,
                          .patience_for_call = std::chrono::seconds(20)},
      train::CheckpointManager(train::Checkpoint({{"v", v}}),
                               directory + "/" + std::to_string(task), {.max_to_keep = 1}),
      std::move(termination));
}

TEST_F(Preemption, ATaskThatIsToldAsksUntilThereIsADecision) {
  WorkerServers servers(2);
  const auto make = [&](int task, TerminationConfig termination) {
    return make_handler(servers, task, std::chrono::milliseconds(200), directory,
                        std::move(termination));
  };
  const auto calls_until_exit = [](internal::PreemptionHandlerImpl& handler) {
    while (true) {
      try {
        handler.run([] {});
      } catch (const Exited&) {
        return handler.total_run_calls();
      } catch (const Error&) {  // of an attempt that has failed
      }
    }
  };
  taken_away = true;
  const auto told = make(0, config());
  EXPECT_THAT(thrown<DeadlineExceededError>([&] {
                while (true) told->run([] {});
              }),
              HasSubstr("/job:worker/task:1 has not answered"));
  const auto late =
      make(1, {.termination_watcher_fn = [] { return false; }, .exit_fn = [] { throw Exited(); }});
  auto others = std::async(std::launch::async, [&] { return calls_until_exit(*late); });
  const int64_t calls = calls_until_exit(*told);
  EXPECT_EQ(others.get(), calls);
}

// It was to save after its first call.
TEST_F(Preemption, AHandlerThatEndsBeforeTheAgreedCallIsNamedToTheOthers) {
  using std::chrono::seconds;
  WorkerServers servers(2);
  auto ended = make_handler(servers, 1, seconds(20), directory,
                            {.termination_watcher_fn = [] { return false; }});
  taken_away = true;
  const auto told = make_handler(servers, 0, seconds(20), directory, config());
  servers.coordination(0).get("test/0/0/decision", seconds(20));
  ended.reset();
  EXPECT_THAT(thrown<FailedPreconditionError>([&] { told->run([] {}); }),
              HasSubstr("/job:worker/task:1 has ended its handler"));
  EXPECT_EQ(told->total_run_calls(), 1);
  told->run([] {});  // there is no stop any more
  EXPECT_FALSE(std::filesystem::exists(directory + "/0/checkpoint"));
}

// Two tasks, of which 0 is told that it has `grace`. Each save counts; as many of a task fail first as is said.
struct FailingSaves {
  FailingSaves(std::chrono::milliseconds grace, const std::string& directory,
               std::vector<int> failing)
      : failures(std::move(failing)) {
    for (int task = 0; task < 2; ++task) {
      const auto i = static_cast<size_t>(task);
      handlers.push_back(make_handler(servers, task, std::chrono::seconds(20), directory,
                                      {.termination_watcher_fn = [task] { return task == 0; },
                                       .exit_fn = [] { throw Exited(); },
                                       .grace_period = grace,
                                       .save_fn =
                                           [this, i] {
                                             if (failures[i]-- > 0)
                                               throw ResourceExhaustedError("no room yet");
                                             ++saves[i];
                                           }}));
    }
  }
  // Until its save fails.
  std::string run(size_t task) {
    return thrown<ResourceExhaustedError>([&] {
      while (true) handlers[task]->run([] {});
    });
  }
  // Until it has saved so often, or exits.
  void run(size_t task, int times) {
    while (saves[task] < times) {
      try {
        handlers[task]->run([] {});
      } catch (const Exited&) {
        return;
      }
    }
  }

  WorkerServers servers{2};
  std::vector<int> failures;
  std::vector<int> saves{0, 0};
  std::vector<std::unique_ptr<internal::PreemptionHandlerImpl>> handlers;
};

TEST_F(Preemption, ASaveThatFailsInOneTaskFailsInAllWhichTryAgainTogether) {
  for (const auto grace : {std::chrono::hours(0), std::chrono::hours(1)}) {
    FailingSaves tasks(grace, directory, {0, 2});
    auto other = std::async(std::launch::async, [&] {
      for (int failure = 0; failure < 2; ++failure) {
        EXPECT_EQ(tasks.run(0), "save_fn of /job:worker/task:1 failed: no room yet");
      }
      tasks.run(0, 3);
    });
    for (int failure = 0; failure < 2; ++failure) EXPECT_EQ(tasks.run(1), "no room yet");
    EXPECT_NO_THROW(tasks.run(1, 1));
    EXPECT_NO_THROW(other.get());
    EXPECT_EQ(tasks.handlers[1]->total_run_calls(), tasks.handlers[0]->total_run_calls());
    EXPECT_THAT(tasks.saves, ElementsAre(3, 1));
  }
}

// The time is over before they have tried again.
TEST_F(Preemption, TasksWhoseFirstSaveHasFailedMakeTheLastOneTogether) {
  FailingSaves tasks(std::chrono::milliseconds(1), directory, {0, 1});
  const auto until_exit = [&](size_t task) {
    EXPECT_THAT(tasks.run(task), HasSubstr("no room yet"));
    tasks.servers.coordination(static_cast<int>(task))
        .get("test/1/0/decision", std::chrono::seconds(20));
    EXPECT_THROW(while (true) tasks.handlers[task]->run([] {}), Exited);
  };
  auto other = std::async(std::launch::async, [&] { until_exit(0); });
  until_exit(1);
  other.get();
  EXPECT_EQ(tasks.handlers[0]->total_run_calls(), tasks.handlers[1]->total_run_calls());
  EXPECT_EQ(tasks.saves[0], tasks.saves[1] + 1);
}

TEST_F(Preemption, AHandlerThatEndsInPlaceOfTryingAgainIsNamedToTheOthers) {
  for (const auto grace : {std::chrono::hours(0), std::chrono::hours(1)}) {
    FailingSaves tasks(grace, directory, {1, 1});
    auto failed = std::async(std::launch::async, [&] {
      EXPECT_THAT(tasks.run(0), HasSubstr("no room yet"));
      return thrown<FailedPreconditionError>([&] { tasks.handlers[0]->run([] {}); });
    });
    EXPECT_THAT(tasks.run(1), HasSubstr("no room yet"));
    tasks.handlers[1].reset();
    EXPECT_THAT(failed.get(), HasSubstr("/job:worker/task:1 has ended its handler"));
    tasks.handlers[0]->run([] {});  // there is no stop any more
    EXPECT_EQ(tasks.saves[0], 0);
  }
}

TEST_F(Preemption, AnErrorOfTheFunctionIsReportedToTheOthers) {
  std::promise<std::string> reported, other;
  WorkerServers servers(2);
  servers.coordination(1).on_error([&](const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const ResourceExhaustedError& e) {
      reported.set_value(e.what());
    } catch (const UnknownError& e) {
      other.set_value(e.what());
    } catch (const std::exception&) {  // the end of the servers
    }
  });
  const Variable v(number(0), {.name = "v"});
  PreemptionCheckpointHandler handler(
      alone, train::Checkpoint({{"v", v}}),
      {.checkpoint_dir = directory, .termination_config = config(), .server = &servers.server(0)});
  EXPECT_THROW(handler.run([] { throw ResourceExhaustedError("no memory today"); }),
               ResourceExhaustedError);
  EXPECT_THROW(handler.run([] { throw 42; }), int);  // NOLINT
  EXPECT_EQ(handler.total_run_calls(), 0);
  auto text = reported.get_future();
  ASSERT_EQ(text.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  EXPECT_THAT(text.get(), HasSubstr("no memory today"));
  EXPECT_EQ(other.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
}

}  // namespace
}  // namespace cohort::distribute
