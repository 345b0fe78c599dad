#include "cohort/distribute/tasks/group_watch.h"

#include <gtest/gtest.h>

#include <utility>

#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"

namespace cohort::internal {
namespace {

using membership::EventKind;
using membership::TaskState;

// Two workers, of which the second is as said.
membership::View view_of(int64_t version, uint64_t incarnation, TaskState state) {
  return {.version = version,
          .generation = version,
          .members = {{.task = {"worker", 0}, .incarnation = 1, .state = TaskState::kAlive},
                      {.task = {"worker", 1}, .incarnation = incarnation, .state = state}}};
}

class GroupWatching : public ::testing::Test {
 protected:
  GroupWatch watch_{
      {{"worker", 0}, {"worker", 1}}, {"worker", 0}, view_of(1, 7, TaskState::kAlive)};
};

TEST_F(GroupWatching, AGroupOfLivingTasksGoesOn) {
  watch_.on_view(view_of(2, 7, TaskState::kAlive));
  watch_.check();
}

TEST_F(GroupWatching, ATaskThatHasEndedEndsTheForming) {
  watch_.on_view(view_of(2, 7, TaskState::kLost));
  expect_error<UnavailableError>([&] { watch_.check(); }, "lost /job:worker/task:1");
}

// Its end and the coming of the other can be one view, in which nobody is lost.
TEST_F(GroupWatching, AnotherProcessInATasksPlaceEndsTheForming) {
  watch_.on_view(view_of(3, 8, TaskState::kAlive));
  expect_error<UnavailableError>([&] { watch_.check(); },
                                 "lost /job:worker/task:1: another process is in its place");
}

TEST_F(GroupWatching, WhatATaskReportsEndsTheForming) {
  membership::View view = view_of(2, 7, TaskState::kAlive);
  view.events = {
      {.version = 2,
       .kind = EventKind::kReported,
       .task = {"worker", 1},
       .incarnation = 7,
       .error = rpc::encode_error(std::make_exception_ptr(DataLossError("record 7 is damaged")))}};
  watch_.on_view(view);
  expect_error<DataLossError>([&] { watch_.check(); }, "record 7 is damaged");
}

}  // namespace
}  // namespace cohort::internal
