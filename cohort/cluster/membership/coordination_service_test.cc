#include "cohort/cluster/membership/coordination_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/cluster/membership/simulation/direct_call.h"
#include "cohort/cluster/membership/simulation/process.h"
#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"

namespace cohort::internal::membership {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Contains;
using testing::HasSubstr;
using CallPtr = std::shared_ptr<CallState>;
using Service = CoordinationService;

class CoordinationServiceTest : public testing::Test {
 protected:
  void begin(int workers) {
    CoordinationOptions options;
    options.incarnation = 99;
    options.self = {"worker", 0};
    for (int i = 0; i < workers; ++i) {
      options.roster.tasks[{"worker", i}] = "h" + std::to_string(i) + ":1";
    }
    options.roster.heartbeat = kTestHeartbeat;
    options.cluster_spec = "spec";
    options.start_timeout = seconds(25);
    options.log = [this](const std::string& line) { lines_.push_back(line); };
    service_ = std::make_unique<Service>(clock_, std::move(options));
  }

  CallPtr call(Service::Method method, int worker, uint64_t incarnation,
               const std::string& control = "") {
    return call_service(*service_, method, {.task = {"worker", worker}, .incarnation = incarnation},
                        control);
  }
  CallPtr enter(int worker, uint64_t incarnation, RegisterRequest request = {}) {
    if (request.cluster_spec.empty()) request.cluster_spec = "spec";
    return call(Service::kRegister, worker, incarnation, request.encode());
  }
  CallPtr watch(int worker, uint64_t incarnation, int64_t since) {
    return call(Service::kWatch, worker, incarnation,
                WatchRequest{.since = since, .at_most = seconds(60)}.encode());
  }
  CallPtr barrier(int worker, uint64_t incarnation, const std::string& name, uint64_t id = 0) {
    return call(Service::kBarrier, worker, incarnation,
                BarrierRequest{.id = id, .name = name, .at_most = seconds(1)}.encode());
  }
  CallPtr barrier_of(int64_t generation, int worker) {
    return call(
        Service::kBarrier, worker, 10 + static_cast<uint64_t>(worker),
        BarrierRequest{.name = "b", .generation = generation, .at_most = seconds(1)}.encode());
  }
  // All workers, incarnations 10, 11, ...
  void begin_started(int workers) {
    begin(workers);
    for (int i = 0; i < workers; ++i) enter(i, 10 + static_cast<uint64_t>(i));
    ASSERT_EQ(service_->status().generation, 1);
  }
  int64_t version() { return service_->status().version; }
  void pass(std::chrono::nanoseconds time) { time_.run_until(time_.now() + time); }
  // Time passes while these live.
  void pass_alive(std::chrono::nanoseconds time, std::vector<int> workers) {
    for (const auto end = time_.now() + time; time_.now() < end; pass(milliseconds(500))) {
      for (const int worker : workers) {
        call(Service::kHeartbeat, worker, 10 + static_cast<uint64_t>(worker));
      }
    }
  }
  static std::string error_of(const CallPtr& call) {
    return call->error ? record_error(call->error).message : "no error";
  }
  static Code code_of(const CallPtr& call) {
    return call->error ? record_error(call->error).code : Code::kOk;
  }

  SimulatedTime time_;
  SimulatedProcess clock_{time_, 1.0, seconds(1000)};
  std::vector<std::string> lines_;
  std::unique_ptr<Service> service_;
};

TEST_F(CoordinationServiceTest, StartsOnceAllAreThere) {
  begin(2);
  enter(0, 10);
  const CallPtr waits = watch(0, 10, version());
  EXPECT_FALSE(waits->answered());
  enter(1, 11);
  ASSERT_TRUE(waits->answered());
  const View view = View::decode(waits->control);
  EXPECT_EQ(view.generation, 1);
  EXPECT_EQ(view.term, 1);
  EXPECT_TRUE(view.complete());
  EXPECT_EQ(view.find({"worker", 1})->address, "h1:1");
}

TEST_F(CoordinationServiceTest, Row29SaysWhoIsMissingAndGivesUp) {
  begin(3);
  enter(0, 10);
  const CallPtr waits = watch(0, 10, version());
  pass_alive(seconds(10), {0});
  pass(milliseconds(1));
  EXPECT_THAT(lines_, Contains("waiting for 10 s for /job:worker/task:1 (h1:1, not heard of for "
                               "10.0 s), /job:worker/task:2 (h2:1, not heard of for 10.0 s)"));
  enter(1, 11);
  pass_alive(seconds(16), {0, 1});
  const View view = View::decode(watch(0, 10, 0)->control);
  const auto failure = rpc::decode_error(view.failure);
  expect_error<DeadlineExceededError>([&] { std::rethrow_exception(failure); },
                                      "has not started within 25 s; missing: /job:worker/task:2");
}

TEST_F(CoordinationServiceTest, WhoWasRefusedIsMissingForThatReason) {
  begin(2);
  enter(0, 10);
  const CallPtr refused = enter(1, 11, {.cluster_spec = "another spec"});
  EXPECT_TRUE(refused->answered());
  pass_alive(seconds(26), {0});
  const View view = View::decode(watch(0, 10, 0)->control);
  const auto failure = rpc::decode_error(view.failure);
  const std::string text = thrown<DeadlineExceededError>([&] { std::rethrow_exception(failure); });
  EXPECT_THAT(text, HasSubstr("missing: /job:worker/task:1 (h1:1, refused 2"));
  EXPECT_THAT(text, HasSubstr("the tasks' cluster specs differ"));
}

TEST_F(CoordinationServiceTest, Row23ASecondStartIsRefusedAndTheFirstGoesOn) {
  begin_started(2);
  const CallPtr first = watch(1, 11, version());
  const CallPtr second = enter(1, 21);
  EXPECT_FALSE(second->answered());
  ASSERT_TRUE(first->answered());  // is it alive?
  EXPECT_FALSE(watch(1, 11, version())->answered());
  EXPECT_EQ(code_of(second), Code::kAborted);
  EXPECT_THAT(error_of(second), HasSubstr("is already registered, incarnation 000000000000000b"));
  EXPECT_EQ(service_->status().generation, 1);
  EXPECT_EQ(code_of(call(Service::kHeartbeat, 1, 11)), Code::kOk);
}

TEST_F(CoordinationServiceTest, AReplacementWaitsUntilItsPredecessorIsDead) {
  begin_started(2);
  const CallPtr replacement = enter(1, 21);
  pass_alive(seconds(1), {0});
  EXPECT_FALSE(replacement->answered());
  pass_alive(milliseconds(1500), {0});
  EXPECT_EQ(error_of(replacement), "no error");
  EXPECT_TRUE(replacement->answered());
  EXPECT_EQ(service_->status().generation, 3);  // one lost, one joined
  EXPECT_EQ(code_of(call(Service::kHeartbeat, 1, 11)), Code::kAborted);
  EXPECT_THAT(error_of(call(Service::kHeartbeat, 1, 11)), HasSubstr("fenced, generation 3"));
  EXPECT_EQ(service_->stale_refused(), 2);
}

TEST_F(CoordinationServiceTest, AReplacementOfOneThatBeatsAndSaysNoMoreIsToldToAskAgain) {
  begin_started(2);
  const CallPtr replacement = enter(1, 21);
  pass_alive(kTestHeartbeat.dead_after + milliseconds(500), {0, 1});
  EXPECT_EQ(code_of(replacement), Code::kUnavailable);
  EXPECT_EQ(error_of(replacement),
            "the predecessor of this /job:worker/task:1 may still be alive; ask again");
}

TEST_F(CoordinationServiceTest, ABrokenConnectionIsDeathUnlessTheTaskCallsAgain) {
  begin_started(3);
  const CallPtr other = watch(0, 10, version());
  CallPtr watched = watch(1, 11, version());
  watched->cancel();
  EXPECT_TRUE(other->answered());
  watch(1, 11, version());  // it was only reset
  pass(milliseconds(40));
  EXPECT_EQ(service_->status().generation, 1);

  const CallPtr attends =
      call(Service::kAttend, 1, 11, WatchRequest{.at_most = seconds(60)}.encode());
  attends->cancel();
  watch(1, 11, version() - 1);  // sent before it ended
  const CallPtr told = watch(0, 10, version());
  pass(milliseconds(31));
  ASSERT_TRUE(told->answered());
  const View view = View::decode(told->control);
  EXPECT_EQ(view.generation, 2);
  ASSERT_EQ(view.events.size(), 1u);
  const auto error = rpc::decode_error(view.events[0].error);
  expect_error<UnavailableError>([&] { std::rethrow_exception(error); },
                                 "lost /job:worker/task:1 (h1:1): its connection broke");
  EXPECT_EQ(rpc::detail_of(error).peer, "/job:worker/task:1");
  EXPECT_EQ(rpc::detail_of(error).incarnation, 11u);
  EXPECT_EQ(rpc::detail_of(error).generation, 2);
}

TEST_F(CoordinationServiceTest, AProcessThatHasEndedIsLostAtOnce) {
  begin_started(2);
  const CallPtr told = watch(0, 10, version());
  service_->process_gone({"worker", 1}, 12);  // of an earlier one
  EXPECT_FALSE(told->answered());
  service_->process_gone({"worker", 1}, 11);
  EXPECT_TRUE(told->answered());
}

TEST_F(CoordinationServiceTest, Row6SilenceIsDeathButNotWhileTheServiceItselfStood) {
  begin_started(2);
  clock_.stop();
  pass(seconds(10));
  clock_.go_on();
  pass(milliseconds(100));
  EXPECT_EQ(service_->status().generation, 1);
  pass_alive(milliseconds(2500), {0});
  EXPECT_EQ(service_->status().generation, 2);
  EXPECT_EQ(service_->status().find({"worker", 1})->state, TaskState::kLost);
}

TEST_F(CoordinationServiceTest, Row21WhoLeavesIsToldApartFromWhoIsLost) {
  begin_started(2);
  const CallPtr told = watch(0, 10, version());
  call(Service::kLeave, 1, 11, LeaveRequest{.where = "at step 41"}.encode());
  const View view = View::decode(told->control);
  ASSERT_EQ(view.events.size(), 1u);
  EXPECT_EQ(view.events[0].kind, EventKind::kLeft);
  const auto error = rpc::decode_error(view.events[0].error);
  expect_error<UnavailableError>([&] { std::rethrow_exception(error); },
                                 "task left at step 41: /job:worker/task:1");
  EXPECT_EQ(view.generation, 2);
}

TEST_F(CoordinationServiceTest, Row26And27OtherSpecsVersionsAndProgramsAreRefused) {
  begin(2);
  const CallPtr spec = enter(1, 11, {.cluster_spec = "another spec"});
  EXPECT_EQ(code_of(spec), Code::kFailedPrecondition);
  EXPECT_THAT(error_of(spec), HasSubstr("/job:worker/task:1 has another spec (hash "));
  EXPECT_THAT(error_of(spec), HasSubstr("/job:worker/task:0 has spec (hash "));

  const CallPtr version = enter(1, 11, {.protocol_major = 2});
  EXPECT_EQ(code_of(version), Code::kFailedPrecondition);
  EXPECT_THAT(error_of(version), HasSubstr("version 2.0 of the cluster's protocol, "
                                           "/job:worker/task:0 version 1.0"));

  enter(0, 10,
        {.program = {{"functions", "step\neval\n"}, {"numeric environment", "avx2", false}}});
  const CallPtr program = enter(1, 11, {.program = {{"functions", "step\ntest\n"}}});
  EXPECT_EQ(code_of(program), Code::kFailedPrecondition);
  EXPECT_THAT(error_of(program), HasSubstr("section 'functions'"));
  EXPECT_THAT(error_of(program), HasSubstr("line 2 is 'eval' there, 'test' here"));

  const CallPtr numbers = enter(1, 11, {.program = {{"numeric environment", "avx512", false}}});
  ASSERT_EQ(error_of(numbers), "no error");
  EXPECT_THAT(RegisterReply::decode(numbers->control).warnings,
              Contains(HasSubstr("line 1 is 'avx2' there, 'avx512' here")));
  const CallPtr strict = enter(1, 11, {.program = {{"numeric environment", "avx512", true}}});
  EXPECT_EQ(code_of(strict), Code::kFailedPrecondition);
}

TEST_F(CoordinationServiceTest, ANewCoordinatorsGenerationIsAboveAllThatSurvivorsReport) {
  begin(2);
  enter(0, 10);
  enter(1, 11, {.term_seen = 3, .generation_seen = 8});
  EXPECT_EQ(service_->status().generation, 9);
  EXPECT_EQ(service_->status().term, 4);
}

TEST_F(CoordinationServiceTest, Row11ASupersededServiceFencesItself) {
  begin_started(2);
  EXPECT_FALSE(enter(1, 21, {.term_seen = 2, .generation_seen = 5})->answered());  // a stranger's
  const CallPtr told = watch(0, 10, version());
  const CallPtr newer = enter(1, 11, {.term_seen = 2, .generation_seen = 5});
  EXPECT_EQ(code_of(newer), Code::kAborted);
  ASSERT_TRUE(told->answered());
  const auto failure = rpc::decode_error(View::decode(told->control).failure);
  expect_error<AbortedError>([&] { std::rethrow_exception(failure); }, "fenced, generation 5");
}

TEST_F(CoordinationServiceTest, BarriersOpenForAllOrNameWhoIsMissing) {
  begin_started(3);
  const CallPtr first = barrier(0, 10, "b", 1);
  const CallPtr second = barrier(1, 11, "b", 1);
  EXPECT_FALSE(first->answered());
  const CallPtr third = barrier(2, 12, "b", 1);
  EXPECT_EQ(error_of(first) + error_of(second) + error_of(third), "no errorno errorno error");
  EXPECT_TRUE(first->answered() && second->answered() && third->answered());
  // An answer that got lost: asked again, it is the same.
  EXPECT_TRUE(barrier(1, 11, "b", 1)->answered());

  const CallPtr late = barrier(0, 10, "c");
  pass(milliseconds(1100));
  EXPECT_EQ(code_of(late), Code::kDeadlineExceeded);
  EXPECT_THAT(error_of(late), HasSubstr("barrier 'c': not all tasks came in time; missing: "
                                        "/job:worker/task:1, /job:worker/task:2"));
}

TEST_F(CoordinationServiceTest, ALostTaskBreaksItsBarriers) {
  begin_started(3);
  const CallPtr waits = barrier(0, 10, "b");
  service_->process_gone({"worker", 2}, 12);
  EXPECT_EQ(code_of(waits), Code::kUnavailable);
  EXPECT_THAT(error_of(waits), HasSubstr("barrier 'b': lost /job:worker/task:2"));
}

// A call that was still on its way when the task was lost must end as one that waited.
TEST_F(CoordinationServiceTest, ALostTaskIsNamedToWhoComesLateToItsBarriers) {
  begin_started(3);
  service_->process_gone({"worker", 2}, 12);
  const CallPtr late = barrier_of(1, 0);
  EXPECT_EQ(code_of(late), Code::kUnavailable);
  EXPECT_THAT(error_of(late), HasSubstr("lost /job:worker/task:2"));
  EXPECT_FALSE(barrier_of(2, 0)->answered());
  EXPECT_THAT(error_of(barrier_of(3, 1)), HasSubstr("fenced, generation 2"));
}

TEST_F(CoordinationServiceTest, BarriersRefuseWhatCannotOpen) {
  begin_started(2);
  const auto with = [&](int worker, std::vector<TaskId> tasks) {
    return call(Service::kBarrier, worker, 10 + static_cast<uint64_t>(worker),
                BarrierRequest{.name = "\x1b[1m", .tasks = std::move(tasks), .at_most = seconds(1)}
                    .encode());
  };
  EXPECT_EQ(code_of(with(0, {{"worker", 7}})), Code::kInvalidArgument);
  EXPECT_EQ(code_of(with(0, {{"worker", 1}})), Code::kInvalidArgument);  // not of its own list
  const CallPtr waits = with(0, {{"worker", 0}, {"worker", 1}});
  EXPECT_EQ(code_of(with(0, {{"worker", 0}, {"worker", 1}})), Code::kFailedPrecondition);
  const CallPtr other = with(1, {{"worker", 1}});
  EXPECT_EQ(code_of(other), Code::kInvalidArgument);
  EXPECT_THAT(error_of(other), HasSubstr("as /job:worker/task:0 says"));
  EXPECT_EQ(error_of(other).find('\x1b'), std::string::npos);
  EXPECT_FALSE(waits->answered());
}

TEST_F(CoordinationServiceTest, AGetWaitsForItsKeyAndChangesTakeEffectOnce) {
  begin_started(2);
  const CallPtr waits =
      call(Service::kGet, 0, 10, StoreRequest{.key = "k", .at_most = seconds(1)}.encode());
  const CallPtr never =
      call(Service::kGet, 0, 10, StoreRequest{.key = "n", .at_most = seconds(1)}.encode());
  EXPECT_FALSE(waits->answered());
  const std::string add = StoreRequest{.id = 5, .key = "k", .delta = 2}.encode();
  EXPECT_EQ(StoreReply::decode(call(Service::kAdd, 1, 11, add)->control).number, 2);
  EXPECT_EQ(StoreReply::decode(call(Service::kAdd, 1, 11, add)->control).number, 2);
  EXPECT_EQ(StoreReply::decode(waits->control).value, "2");
  pass(milliseconds(1100));
  ASSERT_TRUE(never->answered());
  EXPECT_FALSE(StoreReply::decode(never->control).has_value);
  EXPECT_EQ(code_of(call(Service::kSet, 1, 11, StoreRequest{.key = "k", .generation = 7}.encode())),
            Code::kAborted);
}

TEST_F(CoordinationServiceTest, AnswersAreKeptUntilTheirTaskHasThem) {
  begin_started(1);
  const auto add = [&](uint64_t id, uint64_t oldest) {
    return call(Service::kAdd, 0, 10,
                StoreRequest{.id = id, .oldest = oldest, .key = "k", .delta = 1}.encode());
  };
  const auto sum = [&](uint64_t id, uint64_t oldest) {
    return StoreReply::decode(add(id, oldest)->control).number;
  };
  for (uint64_t id = 1; id <= 1000; ++id) sum(id, 1);
  EXPECT_EQ(sum(1, 1), 1) << "its answer was lost, and a thousand others went well";
  EXPECT_EQ(sum(1001, 500), 1001);
  EXPECT_EQ(code_of(add(499, 1)), Code::kAborted) << "an attempt that was on its way for long";
  EXPECT_EQ(sum(500, 1), 500);
  EXPECT_EQ(sum(1002, 1002), 1002);
}

TEST_F(CoordinationServiceTest, ATaskMayHaveManyChangesUnderWayButNotAnyNumber) {
  begin_started(1);
  const auto set = [&](uint64_t id, uint64_t oldest) {
    return call(Service::kSet, 0, 10,
                StoreRequest{.id = id, .oldest = oldest, .key = "k"}.encode());
  };
  for (uint64_t id = 1; id <= kMostAnswered; ++id) ASSERT_EQ(code_of(set(id, 1)), Code::kOk);
  EXPECT_EQ(code_of(set(kMostAnswered + 1, 1)), Code::kResourceExhausted);
  EXPECT_EQ(code_of(set(1, 1)), Code::kOk);
  EXPECT_EQ(code_of(set(kMostAnswered + 1, 2)), Code::kOk);
}

TEST_F(CoordinationServiceTest, WhoIsNotRegisteredGetsNothing) {
  begin_started(2);
  EXPECT_EQ(code_of(call(Service::kGet, 1, 77, StoreRequest{.key = "k"}.encode())),
            Code::kNotFound);
  EXPECT_EQ(code_of(enter(5, 15)), Code::kFailedPrecondition);
  EXPECT_THAT(error_of(enter(5, 15)), HasSubstr("its tasks are /job:worker/task:0"));
  EXPECT_EQ(code_of(call(Service::kHeartbeat, 0, 10, "\xff")), Code::kDataLoss);
}

TEST_F(CoordinationServiceTest, ObserversComeAndGoWithoutANewGeneration) {
  begin_started(1);
  const rpc::Caller evaluator{.task = {"evaluator", 0}, .incarnation = 30};
  call_service(*service_, Service::kRegister, evaluator,
               RegisterRequest{.cluster_spec = "spec"}.encode());
  EXPECT_TRUE(service_->status().find({"evaluator", 0})->observer);
  service_->process_gone({"evaluator", 0}, 30);
  EXPECT_EQ(service_->status().generation, 1);
}

TEST_F(CoordinationServiceTest, StatusHasAgesAndFigures) {
  begin_started(2);
  pass(milliseconds(700));
  call(Service::kHeartbeat, 1, 11, HeartbeatRequest{.figures = {{"steps/s", 3.5}}}.encode());
  pass(milliseconds(300));
  const CallPtr status =
      call_service(*service_, Service::kStatus, {.task = {}, .role = rpc::Role::kOperator}, "");
  const View view = View::decode(status->control);
  const Member* member = view.find({"worker", 1});
  EXPECT_EQ(member->figures.at("steps/s"), 3.5);
  EXPECT_NEAR(std::chrono::duration<double>(*member->state_age).count(), 1.0, 0.01);
  EXPECT_NEAR(std::chrono::duration<double>(*member->silence).count(), 0.3, 0.01);
}

TEST_F(CoordinationServiceTest, StoppingEndsAllCallsThatWait) {
  begin_started(2);
  const CallPtr watched = watch(0, 10, version());
  const CallPtr waits = barrier(0, 10, "b");
  service_->stop();
  EXPECT_EQ(code_of(watched), Code::kCancelled);
  EXPECT_EQ(code_of(waits), Code::kCancelled);
  EXPECT_EQ(code_of(watch(0, 10, 0)), Code::kCancelled);
}

TEST_F(CoordinationServiceTest, OnlyOperatorsMayNotRegister) {
  begin(1);
  for (const rpc::MethodSpec& method : service_->methods()) {
    EXPECT_EQ(method.callers.contains(rpc::Role::kOperator), method.name == "status");
    EXPECT_TRUE(method.callers.contains(rpc::Role::kWorker));
  }
}

TEST_F(CoordinationServiceTest, WhoNoLongerWaitsIsNotCounted) {
  begin_started(2);
  const CallPtr gone = barrier(0, 10, "b", 1);
  gone->cancel();
  const CallPtr second = barrier(1, 11, "b", 1);
  EXPECT_FALSE(second->answered());  // the first is not there any more
  const CallPtr again = barrier(0, 10, "b", 1);
  EXPECT_EQ(error_of(second), "no error");
  EXPECT_TRUE(second->answered());
  EXPECT_TRUE(again->answered());
  // As many as a task may have at once; those that are gone leave room.
  const std::string get = StoreRequest{.key = "k", .at_most = seconds(60)}.encode();
  for (int i = 0; i < 2000; ++i) {
    const CallPtr call_to_get = call(Service::kGet, 0, 10, get);
    ASSERT_NE(code_of(call_to_get), Code::kResourceExhausted) << i;
    call_to_get->cancel();
  }
}

TEST_F(CoordinationServiceTest, ARepeatedArrivalOutlivesTheFirstCall) {
  begin_started(2);
  const CallPtr first = barrier(0, 10, "b", 1);
  const CallPtr repeated = barrier(0, 10, "b", 1);
  ASSERT_TRUE(first->answered());
  if (first->cancelled) first->cancelled();  // late news of the first connection
  barrier(1, 11, "b", 1);
  EXPECT_EQ(error_of(repeated), "no error");
  EXPECT_TRUE(repeated->answered());
}

}  // namespace
}  // namespace cohort::internal::membership
