#include "cohort/parameter_server/runner/loop_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/core/testing_errors.h"
#include "cohort/parameter_server/closures/closure_message.h"
#include "cohort/parameter_server/coordinator/coordinator_core.h"

namespace cohort::internal {
namespace {

using ::testing::HasSubstr;
using Clock = LoopTable::Clock;

std::shared_ptr<const StepFunction> step_named(const std::string& name) {
  return make_step(name, [](const Tensor& x) { return x; });
}

std::shared_ptr<ServedInput> some_input() {
  return std::make_shared<ServedInput>(WorkerInput::MakeDataset(), distribute::InputContext());
}

Clock::time_point in_a_minute() { return Clock::now() + std::chrono::minutes(1); }

TEST(LoopTable, CallsHaveTheNumbersOfTheirOrder) {
  LoopTable table;
  for (int64_t number = 1; number <= 3; ++number) {
    const auto call = table.open();
    EXPECT_EQ(call->number, number);
    EXPECT_EQ(table.open(), call);  // of the same call: fit's validation
  }
}

TEST(LoopTable, StepsWaitForTheProgramToComeToTheirCall) {
  LoopTable table;
  auto found = std::async(std::launch::async, [&] {
    return table.find(2, "evaluate/m", {0, 0}, 1, in_a_minute());
  });
  {
    const auto first = table.open();
    table.declare(*first, step_named("fit/m"));
    table.serve(*first);
  }
  const auto second = table.open();
  table.declare(*second, step_named("evaluate/m"));
  table.set_input(*second, {0, 0}, some_input());
  table.serve(*second);
  EXPECT_EQ(found.get().step->name, "evaluate/m");
}

// The server of a worker that stood still ends, and still gets steps of the call that goes on
// elsewhere.
TEST(LoopTable, StepsOfACallThatWasLeftAreLost) {
  LoopTable table;
  {
    const auto call = table.open();
    table.declare(*call, step_named("fit/m"));
    table.set_input(*call, {0, 0}, some_input());
    table.serve(*call);
    table.give_up(*call);
    EXPECT_THROW(table.find(1, "fit/m", {0, 0}, 1, in_a_minute()), UnavailableError);
  }
  EXPECT_THROW(table.find(1, "fit/m", {0, 0}, 1, in_a_minute()), UnavailableError);
}

TEST(LoopTable, AStepThatCameTooEarlyCountsAsLostAndItsReturnIsAwaited) {
  LoopTable table;
  try {
    table.find(1, "fit/m", {0, 0}, 1, Clock::now());
    FAIL();
  } catch (const UnavailableError& error) {
    EXPECT_THAT(error.what(), HasSubstr("has not come to its call 1"));
    EXPECT_EQ(rpc::detail_of(std::current_exception()).cause, Cause::kInputLost);
  }
  EXPECT_THROW(table.wait_for_program(Clock::now()), UnavailableError);
  const auto call = table.open();
  table.serve(*call);
  table.wait_for_program(Clock::now());
}

TEST(LoopTable, StepsOfACallThatWasGivenUpAreRefusedAtOnce) {
  LoopTable table;
  auto waiting = std::async(std::launch::async, [&] {
    return table.find(1, "fit/m", {0, 0}, 1, in_a_minute());
  });
  {
    const auto call = table.open();
    table.give_up(*call);
    EXPECT_THROW(waiting.get(), UnavailableError);
  }
  EXPECT_THROW(table.find(1, "fit/m", {0, 0}, 1, in_a_minute()), UnavailableError);
  EXPECT_THROW(table.wait_for_program(Clock::now()), UnavailableError);
  const auto next = table.open();  // of a program that goes on
  table.serve(*next);
  table.wait_for_program(Clock::now());
}

TEST(LoopTable, ProgramsThatDifferAreNamed) {
  LoopTable table;
  {
    const auto call = table.open();
    table.declare(*call, step_named("fit/m"));
    table.set_input(*call, {0, 0}, some_input());
    table.serve(*call);
    EXPECT_THAT(thrown<FailedPreconditionError>([&] {
                  table.find(1, "evaluate/m", {0, 0}, 1, in_a_minute());
                }),
                HasSubstr("runs 'evaluate/m'"));
    EXPECT_THROW(table.find(1, "fit/m", {1, 0}, 1, in_a_minute()), FailedPreconditionError);
    EXPECT_EQ(table.find(1, "fit/m", {0, 0}, 1, in_a_minute()).step->name, "fit/m");
  }
  EXPECT_THAT(thrown<FailedPreconditionError>([&] {
                table.find(1, "fit/m", {0, 0}, 1, in_a_minute());
              }),
              HasSubstr("is over in"));
}

TEST(LoopTable, AProgramPastTheCallOfANewCoordinatorMustStartAgain) {
  LoopTable table;
  {
    const auto call = table.open();
    table.declare(*call, step_named("fit/m"));
    table.set_input(*call, {0, 0}, some_input());
    table.serve(*call);
    table.find(1, "fit/m", {0, 0}, 1, in_a_minute());
  }
  const auto second = table.open();
  table.declare(*second, step_named("evaluate/m"));
  table.serve(*second);
  table.check_coordinator();
  EXPECT_THROW(table.find(1, "fit/m", {0, 0}, 2, in_a_minute()), UnavailableError);
  EXPECT_THAT(thrown<UnavailableError>([&] { table.check_coordinator(); }),
              HasSubstr("was started again"));
}

// It was started again itself, has passed by the call with its result, and has run none of its
// steps.
TEST(LoopTable, SoMustAProgramThatOnlyKnowsThatTheCallIsOver) {
  LoopTable table;
  {
    const auto call = table.open();
    table.declare(*call, step_named("fit/m"));
    table.serve(*call);
    table.learn_generation(3);
  }
  EXPECT_THROW(table.find(1, "fit/m", {0, 0}, 3, in_a_minute()), FailedPreconditionError);
  table.check_coordinator();
  EXPECT_THROW(table.find(1, "fit/m", {0, 0}, 4, in_a_minute()), UnavailableError);
  EXPECT_THROW(table.check_coordinator(), UnavailableError);
}

}  // namespace
}  // namespace cohort::internal
