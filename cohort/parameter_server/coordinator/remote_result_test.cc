#include "cohort/parameter_server/coordinator/remote_result.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
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

}  // namespace
}  // namespace cohort::internal
