#include "cohort/cluster/membership/messages.h"

#include <gtest/gtest.h>

#include "cohort/core/bytes/wire.h"
#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"

namespace cohort::internal::membership {
namespace {

using std::chrono::milliseconds;

View some_view() {
  return {.service = 77,
          .term = 2,
          .version = 9,
          .generation = 4,
          .members = {{.task = {"chief", 0},
                       .incarnation = 5,
                       .address = "h0:1",
                       .state = TaskState::kAlive,
                       .state_age = milliseconds(0)},
                      {.task = {"evaluator", 0}, .state = TaskState::kLost, .observer = true},
                      {.task = {"worker", 1},
                       .incarnation = ~uint64_t{0},
                       .address = "h1:1",
                       .state = TaskState::kLeft,
                       .silence = milliseconds(7),
                       .figures = {{"steps/s", 12.5}}}},
          .failure = "bytes",
          .events = {{8, EventKind::kLost, {"worker", 1}, 3, "error"},
                     {9, EventKind::kJoined, {"worker", 1}, 4, ""}}};
}

TEST(MembershipMessages, AViewArrivesAsItWas) {
  const View sent = some_view();
  const View view = View::decode(sent.encode());
  EXPECT_EQ(view.members, sent.members);
  EXPECT_EQ(view.events, sent.events);
  EXPECT_EQ(view.failure, sent.failure);
  EXPECT_EQ(view.generation, 4);
  EXPECT_EQ(view.find({"worker", 1})->incarnation, ~uint64_t{0});
  EXPECT_EQ(view.find({"worker", 2}), nullptr);
  EXPECT_FALSE(view.complete());
}

TEST(MembershipMessages, RequestsArriveAsTheyWere) {
  const StoreRequest store = {.id = 3,
                              .oldest = 2,
                              .key = "k",
                              .value = std::string("\0\xff", 2),
                              .expected = "",
                              .delta = -5,
                              .session = true,
                              .generation = 2,
                              .at_most = milliseconds(20),
                              .after = "j"};
  const StoreRequest same = StoreRequest::decode(store.encode());
  EXPECT_EQ(same.value, store.value);
  EXPECT_EQ(same.id, 3u);
  EXPECT_EQ(same.oldest, 2u);
  EXPECT_EQ(same.expected, "");
  EXPECT_EQ(same.delta, -5);
  EXPECT_EQ(same.at_most, milliseconds(20));
  EXPECT_EQ(StoreRequest::decode(StoreRequest{.key = "k"}.encode()).expected, std::nullopt);

  const BarrierRequest barrier = BarrierRequest::decode(BarrierRequest{
      .id = 5,
      .oldest = 4,
      .name = "b",
      .tasks = {{"worker", 1}, {"chief", 0}, {"worker", 1}}}.encode());
  EXPECT_EQ(barrier.id, 5u);
  EXPECT_EQ(barrier.oldest, 4u);
  EXPECT_EQ(barrier.tasks, (std::vector<TaskId>{{"chief", 0}, {"worker", 1}}));

  const RegisterRequest registration = RegisterRequest::decode(
      RegisterRequest{.address = "h:1",
                      .cluster_spec = "spec",
                      .program = {{"functions", "step\n", true}, {"numbers", "avx2", false}},
                      .term_seen = 1,
                      .generation_seen = 7}
          .encode());
  ASSERT_EQ(registration.program.size(), 2u);
  EXPECT_TRUE(registration.program[0].strict);
  EXPECT_FALSE(registration.program[1].strict);
  EXPECT_EQ(registration.generation_seen, 7);
}

TEST(MembershipMessages, OfAnotherMajorVersionOnlyTheVersionIsRead) {
  const std::string later = WireWriter().varint(1, 2).varint(2, 3).varint(4, 9).str();
  const RegisterRequest request = RegisterRequest::decode(later);
  EXPECT_EQ(request.protocol_major, 2);
  EXPECT_EQ(request.protocol_minor, 3);
}

TEST(MembershipMessages, EveryTruncationIsRefusedOrAShorterMessage) {
  const std::string bytes = some_view().encode();
  int refused = 0;
  for (size_t size = 0; size < bytes.size(); ++size) {
    try {
      View::decode(std::string_view(bytes).substr(0, size));
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 100);
}

TEST(MembershipMessages, LimitsHoldBeforeMemoryIsTaken) {
  std::string sections;
  for (size_t i = 0; i <= kMostSections; ++i) sections += WireWriter().bytes(1, "\x0a\x01x").str();
  expect_error<InvalidArgumentError>([&] { DeclareRequest::decode(sections); },
                                     "more than 32 sections");
  expect_error<ResourceExhaustedError>(
      [&] {
        StoreRequest::decode(StoreRequest{.value = std::string(kMostValueBytes + 1, 'x')}.encode());
      },
      "at most 1048576 are allowed");
  expect_error<InvalidArgumentError>(
      [] { BarrierRequest::decode(BarrierRequest{.name = "\xff"}.encode()); }, "is not UTF-8");
  expect_error<InvalidArgumentError>([] { BarrierRequest::decode(""); }, "is empty");
}

TEST(MembershipMessages, AServiceCannotImposeSettingsThatKillEverybody) {
  RegisterReply reply{.service = 1};
  reply.heartbeat.dead_after = milliseconds(1);
  EXPECT_THROW(RegisterReply::decode(reply.encode()), InvalidArgumentError);
}

TEST(MembershipMessages, SettingsAreChecked) {
  EXPECT_NO_THROW(check(kDefaultHeartbeat));
  EXPECT_NO_THROW(check(kTestHeartbeat));
  expect_error<InvalidArgumentError>([] { check({.dead_after = milliseconds(19'000)}); },
                                     "let it miss at least four: 20000 ms");
  expect_error<InvalidArgumentError>([] { check({.interval = milliseconds(0)}); }, "positive");
  expect_error<InvalidArgumentError>([] { check({.reconnect_grace = milliseconds(-1)}); },
                                     "between 0 and dead_after");
}

}  // namespace
}  // namespace cohort::internal::membership
