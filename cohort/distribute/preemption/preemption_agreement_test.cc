// Several tasks, of which one is told that its machine will be taken away: all save together, or
// learn why not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <string>

#include "cohort/distribute/preemption/preemption_handler_impl.h"
#include "cohort/distribute/preemption/testing_preemption.h"
#include "cohort/distribute/testing_errors.h"
#include "cohort/distribute/testing_numbers.h"
#include "cohort/distribute/testing_servers.h"
#include "cohort/distribute/testing_tasks.h"

namespace cohort::distribute {
namespace {

using experimental::PreemptionCheckpointHandler;
using experimental::TerminationConfig;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// One task of three is told; all save one checkpoint after the same call, to which every replica
// has contributed, and exit.
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

// A save_fn that saves as a group, in three tasks, of which one throws before it comes to that: all
// get its error, and the next call saves.
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

// Two tasks, of which 0 is told that it has `grace`. Each save counts; as many of a task fail first
// as is said.
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
