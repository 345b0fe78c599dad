#include "cohort/parameter_server/cluster/reported_failures.h"

#include <gtest/gtest.h>

#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

TEST(ReportedFailures, KeepsTheFirstAndWhatEachTaskHasSaidLast) {
  const TaskId first{"ps", 0}, second{"ps", 1};
  const auto failure = [](const TaskId& task, const char* text) {
    return rpc::make_error(Code::kNotFound, text, to_string(task),
                           {.peer = to_string(task), .cause = Cause::kProgramFailed});
  };
  ReportedFailures told;
  told.note(std::make_exception_ptr(UnavailableError("of a loss")));
  EXPECT_EQ(told.first_older_than({}), nullptr);
  told.note(failure(first, "no table"));
  EXPECT_EQ(told.first_older_than(std::chrono::hours(1)), nullptr);
  told.note(failure(second, "no file"));
  told.note(failure(second, "no directory"));
  EXPECT_EQ(record_error(told.first_older_than({})).message, "no table");
  EXPECT_EQ(told.of(first), "no table");
  EXPECT_EQ(told.of(second), "no directory");
  EXPECT_EQ(told.of({"worker", 0}), "");
}

}  // namespace
}  // namespace cohort::internal
