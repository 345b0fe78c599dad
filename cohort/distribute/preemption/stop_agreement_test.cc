// Tasks with real servers agree on a call after which all stop.
#include "cohort/distribute/preemption/stop_agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <optional>
#include <random>
#include <thread>

#include "cohort/distribute/testing_errors.h"
#include "cohort/distribute/testing_servers.h"

namespace cohort::internal {
namespace {

using namespace std::chrono_literals;
using distribute::WorkerServers;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

TEST(StopAgreement, AloneItStopsAfterTheNextCall) {
  StopAgreement agreement({}, 0, 4);
  agreement.begin_call();
  EXPECT_FALSE(agreement.finish_call());
  EXPECT_TRUE(agreement.ask("why"));
  EXPECT_EQ(agreement.note(), "why");
  EXPECT_FALSE(agreement.ask("again"));  // a later signal
  agreement.begin_call();
  EXPECT_TRUE(agreement.finish_call());
}

TEST(StopAgreement, AskedDuringACallItIsThatCall) {
  StopAgreement agreement({}, 0, 0);
  agreement.begin_call();
  agreement.ask("");
  EXPECT_TRUE(agreement.finish_call());
}

struct Tasks {
  explicit Tasks(int count, std::chrono::milliseconds patience = 20s,
                 std::chrono::milliseconds patience_for_call = 20s)
      : servers(count) {
    for (int i = 0; i < count; ++i) {
      StopGroup group{.cluster = &servers.coordination(i),
                      .name = "test",
                      .tasks = servers.tasks(),
                      .self = static_cast<size_t>(i),
                      .patience = patience,
                      .patience_for_call = patience_for_call};
      agreements.push_back(std::make_unique<StopAgreement>(std::move(group), 0, 0));
    }
  }
  WorkerServers servers;
  std::vector<std::unique_ptr<StopAgreement>> agreements;
};

// Tasks at different speeds, of which several ask at random moments: each stops after the same
// call.
TEST(StopAgreement, AllStopAfterTheSameCallHoweverFarApartTheyAre) {
  const unsigned seed = 20261123;
  for (int trial = 0; trial < 10; ++trial) {
    Tasks tasks(3);
    std::vector<std::future<int64_t>> last_calls;
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < 3; ++i) {
      StopAgreement& own = *tasks.agreements[i];
      threads.emplace_back([&own](const std::stop_token& stop) {
        while (!own.answer(50ms) && !stop.stop_requested()) continue;
      });
      last_calls.push_back(std::async(std::launch::async, [&own, i, trial] {
        std::mt19937 random(seed + static_cast<unsigned>(trial) * 3 + static_cast<unsigned>(i));
        const int64_t asks_at = static_cast<int64_t>(random() % 40);
        std::jthread asker;
        for (int64_t call = 0; call < 1'000'000; ++call) {
          own.begin_call();
          if (call == asks_at && i != 1) asker = std::jthread([&own] { own.ask("x"); });
          for (auto work = random() % 20 * (1 + i); work > 0; --work) std::this_thread::yield();
          if (own.finish_call()) return call + 1;
        }
        return int64_t{-1};
      }));
    }
    std::vector<int64_t> calls;
    for (auto& last_call : last_calls) calls.push_back(last_call.get());
    EXPECT_GT(calls[0], 0) << "seed " << seed << ", trial " << trial;
    EXPECT_THAT(calls, Each(calls[0])) << "seed " << seed << ", trial " << trial;
  }
}

// A call whose end was said not to be the last one cannot become it.
TEST(StopAgreement, ATaskBetweenTwoCallsStopsAfterTheSecond) {
  Tasks tasks(2);
  StopAgreement& in_a_call = *tasks.agreements[0];
  StopAgreement& between = *tasks.agreements[1];
  between.begin_call();
  EXPECT_FALSE(between.finish_call());
  in_a_call.begin_call();
  auto answered = std::async(std::launch::async, [&] { return between.answer(20s); });
  EXPECT_TRUE(in_a_call.ask(""));
  EXPECT_TRUE(answered.get());
  EXPECT_FALSE(in_a_call.finish_call());
  for (StopAgreement* task : {&in_a_call, &between}) {
    task->begin_call();
    EXPECT_TRUE(task->finish_call());
  }
}

// What the next call of the function throws at a task that others had asked, once.
std::string refusal_of(StopAgreement& task) {
  const std::string message = thrown<UnavailableError>([&] { task.begin_call(); });
  task.begin_call();
  EXPECT_FALSE(task.finish_call());
  return message;
}

TEST(StopAgreement, ATaskThatDoesNotAnswerIsNamedAndTheOthersGoOn) {
  Tasks tasks(3, 1500ms);
  StopAgreement &first = *tasks.agreements[0], &second = *tasks.agreements[1],
                &silent = *tasks.agreements[2];
  auto answered = std::async(std::launch::async, [&] { return second.answer(20s); });
  EXPECT_THAT(thrown<DeadlineExceededError>([&] { first.ask(""); }),
              HasSubstr("/job:worker/task:2 has not answered for 1500 ms"));
  first.begin_call();
  EXPECT_FALSE(first.finish_call());
  EXPECT_FALSE(answered.get());
  EXPECT_THAT(refusal_of(second), AllOf(HasSubstr("/job:worker/task:0 asked all to stop"),
                                        HasSubstr("task:2 has not")));

  // Whoever asks next is answered, also by the one that was late.
  EXPECT_FALSE(silent.answer(20s));
  EXPECT_THAT(refusal_of(silent), HasSubstr("task:2 has not"));
  std::vector<std::future<bool>> answers;
  for (StopAgreement* task : {&first, &silent}) {
    answers.push_back(std::async(std::launch::async, [=] { return task->answer(20s); }));
  }
  EXPECT_TRUE(second.ask("again"));
  for (auto& one : answers) EXPECT_TRUE(one.get());
  for (const auto& task : tasks.agreements) {
    EXPECT_EQ(task->note(), "again");
    task->begin_call();
    EXPECT_TRUE(task->finish_call());
  }
}

// The coordination service could not be reached at its end.
TEST(StopAgreement, AnAttemptThatHasNoEndIsEndedByItsAsker) {
  Tasks tasks(2);
  tasks.servers.coordination(0).set("test/0/0/asked", "0");
  auto answered = std::async(std::launch::async, [&] { return tasks.agreements[1]->answer(20s); });
  EXPECT_TRUE(tasks.agreements[0]->ask(""));
  EXPECT_TRUE(answered.get());
}

TEST(StopAgreement, AnAskerThatIsLostIsNamedAtOnceAndAnotherOneAsks) {
  Tasks tasks(3, 10min);
  StopAgreement &first = *tasks.agreements[0], &asker = *tasks.agreements[1];
  auto asked = std::async(std::launch::async, [&] {  // task 2 does not answer
    EXPECT_THROW(asker.ask(""), Error);
  });
  auto answered = std::async(std::launch::async, [&] { return first.answer(20s); });
  while (tasks.servers.coordination(0).list("test/0/0/next/").empty()) std::this_thread::yield();
  tasks.servers.server(1).stop();
  EXPECT_THAT(refusal_of(first), HasSubstr("/job:worker/task:1 asked all to stop, but"));
  EXPECT_FALSE(answered.get());
  asked.get();
  EXPECT_THAT(thrown<UnavailableError>([&] { first.ask(""); }),
              HasSubstr("/job:worker/task:1 has left"));
}

// What is saved after a call that fails to be saved is saved after the next.
TEST(StopAgreement, AStopThatHasFailedIsTriedAgainAfterTheNextCall) {
  StopAgreement agreement({}, 0, 0);
  agreement.begin_call();
  agreement.ask("");
  EXPECT_TRUE(agreement.finish_call());
  agreement.begin_call();
  EXPECT_TRUE(agreement.finish_call());
}

TEST(StopAgreement, WhereATaskHasEndedTheOthersGoOnToTheirEnd) {
  Tasks tasks(3);
  tasks.agreements[2]->end();
  tasks.agreements[0]->begin_call();
  auto other = std::async(std::launch::async, [&] {
    while (!tasks.agreements[1]->answer(50ms)) continue;
    return tasks.agreements[1]->is_decided();
  });
  EXPECT_FALSE(tasks.agreements[0]->ask(""));
  EXPECT_FALSE(tasks.agreements[0]->is_decided());
  EXPECT_FALSE(other.get());
  EXPECT_FALSE(tasks.agreements[0]->finish_call());
  tasks.agreements[1]->begin_call();
  EXPECT_FALSE(tasks.agreements[1]->finish_call());
}

TEST(StopAgreement, ATaskThatEndsAfterItWasAskedIsNotWaitedFor) {
  Tasks tasks(2);
  auto asked = std::async(std::launch::async, [&] { return tasks.agreements[0]->ask(""); });
  tasks.servers.coordination(1).get("test/0/0/asked", 20s);
  tasks.agreements[1]->end();
  EXPECT_FALSE(asked.get());
}

// It ends in the attempt that it knows of; the others are at a later one.
TEST(StopAgreement, ATaskThatHasMissedAnAttemptAndEndsIsNotWaitedForInTheNext) {
  Tasks tasks(2, 300ms);
  StopAgreement &asker = *tasks.agreements[0], &silent = *tasks.agreements[1];
  EXPECT_THROW(asker.ask(""), DeadlineExceededError);
  silent.end();
  EXPECT_FALSE(asker.ask(""));
  EXPECT_TRUE(asker.is_settled());
  EXPECT_FALSE(asker.is_decided());
}

TEST(StopAgreement, ATaskThatEndsAfterItHasAnsweredIsNotWaitedFor) {
  Tasks tasks(3);  // task 2 is silent
  auto asked = std::async(std::launch::async, [&] { return tasks.agreements[0]->ask(""); });
  auto answered = std::async(std::launch::async, [&] { return tasks.agreements[1]->answer(20s); });
  tasks.servers.coordination(0).get("test/0/0/next/1", 20s);
  tasks.agreements[1]->end();
  EXPECT_TRUE(answered.get());
  EXPECT_FALSE(asked.get());
  EXPECT_FALSE(tasks.agreements[1]->is_decided());
}

TEST(StopAgreement, ATaskThatEndsWhileItAsksWaitsForNobody) {
  Tasks tasks(2);
  StopAgreement &asker = *tasks.agreements[0], &other = *tasks.agreements[1];
  auto asked = std::async(std::launch::async, [&] { return asker.ask(""); });
  tasks.servers.coordination(1).get("test/0/0/asked", 20s);
  asker.end();
  EXPECT_FALSE(asked.get());
  EXPECT_TRUE(other.answer(20s));
  EXPECT_FALSE(other.is_decided());
}

// It ends in the round that it knows of; the others are at the next.
TEST(StopAgreement, ATaskThatEndsInAnEarlierRoundIsNotWaitedForInTheNext) {
  Tasks tasks(2);
  StopAgreement next({.cluster = &tasks.servers.coordination(0),
                      .name = "test",
                      .tasks = tasks.servers.tasks(),
                      .patience = 20s},
                     1, 1);
  tasks.agreements[1]->end();
  EXPECT_FALSE(next.ask(""));
  EXPECT_FALSE(next.is_decided());
}

TEST(StopAgreement, ATaskThatHasLeftIsNamedWhileAnotherOneDoesNotAnswer) {
  Tasks tasks(3);  // task 1 is silent
  tasks.servers.server(2).stop();
  EXPECT_THAT(thrown<UnavailableError>([&] { tasks.agreements[0]->ask(""); }),
              HasSubstr("/job:worker/task:2 has left"));
}

// All have agreed to stop after call 1.
void agree(Tasks& tasks) {
  std::vector<std::future<bool>> answers;
  for (size_t i = 1; i < tasks.agreements.size(); ++i) {
    answers.push_back(
        std::async(std::launch::async, [&, i] { return tasks.agreements[i]->answer(20s); }));
  }
  EXPECT_TRUE(tasks.agreements[0]->ask(""));
  for (auto& answer : answers) EXPECT_TRUE(answer.get());
}

void meet_after(Tasks& tasks, int64_t call) {
  std::vector<std::future<void>> barriers;
  for (const auto& task : tasks.agreements) {
    task->begin_call();
    EXPECT_TRUE(task->finish_call());
    barriers.push_back(std::async(std::launch::async, [&, call] { task->meet(call); }));
  }
  for (auto& barrier : barriers) EXPECT_NO_THROW(barrier.get());
}

// All are at the end of call 1.
void meet(Tasks& tasks) {
  agree(tasks);
  meet_after(tasks, 1);
}

TEST(StopAgreement, AllMeetAfterTheAgreedCall) {
  Tasks tasks(3);
  meet(tasks);
}

TEST(StopAgreement, ATaskThatEndsBeforeTheAgreedCallIsNamedToThoseThatComeToIt) {
  Tasks tasks(3);
  agree(tasks);
  StopAgreement &early = *tasks.agreements[0], &ended = *tasks.agreements[1],
                &late = *tasks.agreements[2];
  early.begin_call();
  EXPECT_TRUE(early.finish_call());
  auto waits = std::async(std::launch::async, [&] { early.meet(1); });
  tasks.servers.coordination(1).get("test/0/arrived at 1/0", 20s);
  ended.end();
  const auto names_it = AllOf(HasSubstr("/job:worker/task:1 has ended its handler"),
                              HasSubstr("agreed to save after call 1"));
  EXPECT_THAT(thrown<FailedPreconditionError>([&] { waits.get(); }), names_it);
  late.begin_call();
  EXPECT_TRUE(late.finish_call());
  EXPECT_THAT(thrown<FailedPreconditionError>([&] { late.meet(1); }), names_it);
  for (StopAgreement* task : {&early, &late}) {  // there is no stop any more
    task->begin_call();
    EXPECT_FALSE(task->finish_call());
  }
}

TEST(StopAgreement, ATaskThatDoesNotComeToTheAgreedCallIsNamed) {
  Tasks tasks(2, 20s, 300ms);
  agree(tasks);
  StopAgreement& first = *tasks.agreements[0];
  first.begin_call();
  EXPECT_TRUE(first.finish_call());
  EXPECT_THAT(thrown<DeadlineExceededError>([&] { first.meet(1); }),
              HasSubstr("/job:worker/task:1 has not come to the agreed call for 300 ms"));
}

TEST(StopAgreement, ATaskThatHasLeftBeforeTheAgreedCallIsNamed) {
  Tasks tasks(2);
  agree(tasks);
  tasks.agreements[0]->begin_call();
  EXPECT_TRUE(tasks.agreements[0]->finish_call());
  tasks.servers.server(1).stop();
  EXPECT_THAT(thrown<UnavailableError>([&] { tasks.agreements[0]->meet(1); }),
              HasSubstr("the tasks cannot save together: /job:worker/task:1 has left"));
}

TEST(StopAgreement, ATaskThatHasLeftIsNamedWhileAnotherOneDoesNotCome) {
  Tasks tasks(3);
  agree(tasks);
  tasks.agreements[0]->begin_call();
  EXPECT_TRUE(tasks.agreements[0]->finish_call());
  tasks.servers.server(2).stop();
  EXPECT_THAT(thrown<UnavailableError>([&] { tasks.agreements[0]->meet(1); }),
              HasSubstr("the tasks cannot save together: /job:worker/task:2 has left"));
}

TEST(StopAgreement, WhoTriesAgainWaitsForThoseThatDoAndForNoneThatHasSaved) {
  Tasks tasks(3);
  meet(tasks);
  StopAgreement &saved = *tasks.agreements[0], &failed = *tasks.agreements[1],
                &other = *tasks.agreements[2];
  tasks.servers.coordination(0).set("test/0/done/0", "");
  saved.end();
  auto waits = std::async(std::launch::async, [&] { failed.meet(2); });
  tasks.servers.coordination(2).get("test/0/arrived at 2/1", 20s);
  other.meet(2);
  EXPECT_NO_THROW(waits.get());
  EXPECT_TRUE(failed.is_due());
}

TEST(StopAgreement, ATaskThatEndsInPlaceOfTryingAgainIsNamed) {
  Tasks tasks(3);
  meet(tasks);
  StopAgreement &saved = *tasks.agreements[0], &failed = *tasks.agreements[1],
                &ended = *tasks.agreements[2];
  tasks.servers.coordination(0).set("test/0/done/0", "");
  saved.end();
  auto waits = std::async(std::launch::async, [&] { failed.meet(2); });
  tasks.servers.coordination(2).get("test/0/arrived at 2/1", 20s);
  ended.end();
  EXPECT_THAT(thrown<FailedPreconditionError>([&] { waits.get(); }),
              AllOf(HasSubstr("/job:worker/task:2 has ended its handler"),
                    HasSubstr("agreed to save after call 1")));
  EXPECT_FALSE(failed.is_due());
}

// That others have ended is no reason to keep silent about the own end.
TEST(StopAgreement, EveryTaskThatEndsSaysSo) {
  Tasks tasks(3);
  meet(tasks);
  StopAgreement &ended = *tasks.agreements[1], &last = *tasks.agreements[2];
  ended.end();
  EXPECT_THROW(last.meet(2), FailedPreconditionError);
  last.end();
  EXPECT_EQ(tasks.servers.coordination(0).list("test/ended/").size(), 2U);
}

TEST(StopAgreement, WhoTriesAgainDoesSoWithoutATaskThatHasLeft) {
  Tasks tasks(2);
  meet(tasks);
  tasks.servers.server(1).stop();
  EXPECT_NO_THROW(tasks.agreements[0]->meet(2));
  EXPECT_TRUE(tasks.agreements[0]->is_due());
}

// Each does so, but one throws.
std::vector<std::future<void>> do_together(Tasks& tasks, std::optional<size_t> failing) {
  std::vector<std::future<void>> done;
  for (size_t i = 0; i < tasks.agreements.size(); ++i) {
    done.push_back(std::async(std::launch::async, [&, i, failing] {
      tasks.agreements[i]->do_together("the work", *train::alone(), [&] {
        if (i == failing) throw ResourceExhaustedError("no room");
      });
    }));
  }
  return done;
}

TEST(StopAgreement, WhatOneTaskCannotDoAllTryAgainAfterTheNextCall) {
  Tasks tasks(3);
  meet(tasks);
  for (auto& one : do_together(tasks, 1)) EXPECT_THROW(one.get(), ResourceExhaustedError);
  for (const auto& task : tasks.agreements) EXPECT_TRUE(task->is_due());
  meet_after(tasks, 2);
  for (auto& one : do_together(tasks, std::nullopt)) EXPECT_NO_THROW(one.get());
  for (const auto& task : tasks.agreements) EXPECT_FALSE(task->is_due());
}

TEST(StopAgreement, WhatIsNoNumberUnderItsKeysIsAnError) {
  Tasks tasks(2);
  tasks.servers.coordination(0).set("test/0/0/next/1", "soon");
  EXPECT_THAT(thrown<DataLossError>([&] { tasks.agreements[0]->ask(""); }), HasSubstr("'soon'"));
  for (const char* asker : {"me", "-1", "2", "184467440737095516160"}) {
    tasks.servers.coordination(0).set("test/0/0/asked", asker);
    EXPECT_THAT(thrown<DataLossError>([&] { tasks.agreements[1]->answer(20s); }), HasSubstr(asker));
  }
}

}  // namespace
}  // namespace cohort::internal
