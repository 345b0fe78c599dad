#include "cohort/core/cpu/numeric_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/cpu/intra_op_threads.h"

namespace cohort::internal {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

TEST(NumericEnvironment, IsTheSameEachTimeAndSaysWhatThereIs) {
  const std::string text = numeric_environment();
  EXPECT_EQ(numeric_environment(), text);
  EXPECT_THAT(text, HasSubstr("libtorch: "));
  EXPECT_THAT(text, HasSubstr("\nprocessor: "));
  EXPECT_THAT(text, ContainsRegex("\nresults of small operations: [0-9a-f]+\n$"));
}

TEST(NumericEnvironment, KnowsTheNumberOfThreads) {
  const ScopedIntraOpThreads one(1);
  const std::string alone = numeric_environment();
  EXPECT_THAT(alone, HasSubstr("\nthreads of an operation: 1\n"));
  const ScopedIntraOpThreads two(2);
  EXPECT_THAT(numeric_environment(), HasSubstr("\nthreads of an operation: 2\n"));
}

}  // namespace
}  // namespace cohort::internal
