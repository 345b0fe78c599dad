#include "cohort/parameter_server/coordinator/remote_result.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"

namespace cohort::internal {
namespace {

using std::chrono::steady_clock;

// Each takes the one before; call by call within each other, they would need more than a stack.
TEST(RemoteResult, ALongChainEndsWithoutADeepStack) {
  constexpr size_t kMany = 200000;
  std::vector<std::shared_ptr<RemoteResult>> chain;
  for (size_t i = 0; i < kMany; ++i) chain.push_back(std::make_shared<RemoteResult>());
  for (size_t i = 1; i < kMany; ++i) {
    chain[i - 1]->on_end([next = chain[i]](const RemoteResult& before) {
      RootFailure root = before.root();
      ++root.between;
      next->fail(std::make_exception_ptr(CancelledError("an argument failed")), root);
    });
  }
  chain[0]->fail(std::make_exception_ptr(DataLossError("the first")));
  EXPECT_EQ(thrown<CancelledError>([&] { chain.back()->get(steady_clock::now(), "it"); }),
            "an argument failed");
  EXPECT_EQ(chain.back()->root().text, "the first");
  EXPECT_EQ(chain.back()->root().between, kMany - 1);
}

TEST(RemoteResult, WhoWaitsReportsItAndSaysAtTheEndWhatItWaitedFor) {
  const auto result = std::make_shared<RemoteResult>();
  std::vector<std::string> reports;
  result->describe([&] {
    return ResultWait{.what = "fetch of 'step' (closure 3)",
                      .report_after = std::chrono::milliseconds(10),
                      .report = [&](const std::string& what,
                                    steady_clock::time_point) { reports.push_back(what); },
                      .state = [] { return "worker 1 has had it"; }};
  });
  const auto deadline = steady_clock::now() + std::chrono::milliseconds(200);
  EXPECT_EQ(thrown<DeadlineExceededError>([&] { result->get(deadline, "it"); }),
            "fetch of 'step' (closure 3) has not ended in time: worker 1 has had it");
  ASSERT_GE(reports.size(), 2u);
  EXPECT_EQ(reports[0], "fetch of 'step' (closure 3)");
}

}  // namespace
}  // namespace cohort::internal
