#include "cohort/core/program/start_thread.h"

#include <gtest/gtest.h>

#include "cohort/core/testing_errors.h"
#include "cohort/core/threads/testing_threads.h"

namespace cohort::internal {
namespace {

TEST(StartThread, RunsWhatItIsGiven) {
  int runs = 0;
  start_thread("to count with", [&] { ++runs; }).join();
  EXPECT_EQ(runs, 1);
}

TEST(StartThread, WithoutAThreadIsAnErrorThatSaysWhatToDo) {
  const NoMoreThreads none;
  for (const char* text : {"no thread to count with: ", "(ulimit -u)"}) {
    expect_error<ResourceExhaustedError>([] { start_thread("to count with", [] {}).join(); }, text);
  }
}

}  // namespace
}  // namespace cohort::internal
