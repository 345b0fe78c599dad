#include "cohort/core/libtorch_error.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"
#include "cohort/core/error_context.h"
#include "cohort/core/testing_errors.h"
#include "cohort/core/traceback.h"

namespace cohort::internal {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string text_of_failed_product() {
  try {
    with_typed_errors("here", [] { return at::ones({2}).matmul(at::ones({3})); });
  } catch (const InvalidArgumentError& error) {
    return error.what();
  }
  return "no error";
}

TEST(LibtorchErrorTest, IsTypedAndSaysWhereWithoutABacktrace) {
  const std::string text = text_of_failed_product();
  EXPECT_THAT(text, HasSubstr("here: "));
  EXPECT_THAT(text, HasSubstr("inconsistent tensor size"));
  EXPECT_THAT(text, Not(HasSubstr("frame #")));
  EXPECT_LT(text.size(), 300U);
}

TEST(LibtorchErrorTest, HasTheBacktraceOnRequest) {
  debugging::disable_traceback_filtering();
  EXPECT_FALSE(debugging::is_traceback_filtering_enabled());
  const std::string text = text_of_failed_product();
  debugging::enable_traceback_filtering();
  EXPECT_TRUE(debugging::is_traceback_filtering_enabled());
  EXPECT_THAT(text, HasSubstr("frame #0"));
}

TEST(LibtorchErrorTest, TheClassSaysWhatToDoNext) {
  expect_error<ResourceExhaustedError>(
      [] { with_typed_errors("here", [] { return at::empty({int64_t{1} << 55}); }); }, "here: ");
  expect_error<UnimplementedError>(
      [] { with_typed_errors("here", [] { TORCH_CHECK_NOT_IMPLEMENTED(false, "not yet"); }); },
      "here: not yet");
  // Not OutOfRange, which is the end of the data.
  expect_error<InvalidArgumentError>(
      [] { with_typed_errors("here", [] { return at::ones({2}).sum(5); }); }, "here: ");
}

TEST(LibtorchErrorTest, OtherErrorsGoOnAsTheyAre) {
  EXPECT_THROW(with_typed_errors("here", [] { throw NotFoundError("x"); }), NotFoundError);
  EXPECT_THROW(with_typed_errors("here", [] { throw std::runtime_error("x"); }),
               std::runtime_error);
}

TEST(LibtorchErrorTest, OfACallOfLibtorchAloneRuntimeErrorsAreItsOwn) {
  expect_error<InvalidArgumentError>(
      [] { libtorch_call("reshape", [] { return at::ones({2}).reshape({3}); }); }, "reshape: ");
  expect_error<InvalidArgumentError>(
      [] { libtorch_call("here", [] { throw std::runtime_error("x"); }); }, "here: x");
  expect_error<ResourceExhaustedError>(
      [] { libtorch_call("here", [] { return at::empty({int64_t{1} << 55}); }); }, "here: ");
  EXPECT_THROW(libtorch_call("here", [] { throw NotFoundError("x"); }), NotFoundError);
}

TEST(ErrorContextTest, AnEndOfDataInAFunctionIsAnErrorOfTheElement) {
  expect_error<InvalidArgumentError>(
      [] {
        try {
          throw OutOfRangeError("mine");
        } catch (...) {
          rethrow_with_context("map: element 3");
        }
      },
      "map: element 3: the function threw an OutOfRangeError: mine");
}

TEST(ErrorContextTest, AStepsErrorNamesTheReplicaIfItsClassIsCohorts) {
  struct Own : InvalidArgumentError {
    using InvalidArgumentError::InvalidArgumentError;
  };
  const auto of_step = [](const auto& error, const std::string& replica) {
    std::rethrow_exception(error_of_step(std::make_exception_ptr(error), replica));
  };
  expect_error<NotFoundError>([&] { of_step(NotFoundError("x"), "replica 1"); }, "replica 1: x");
  expect_error<Own>([&] { of_step(Own("x"), "replica 1"); }, "x");
  expect_error<std::runtime_error>([&] { of_step(std::runtime_error("x"), "replica 1"); }, "x");
  EXPECT_STREQ(
      [&] {
        try {
          of_step(NotFoundError("x"), "");
        } catch (const NotFoundError& error) {
          return std::string(error.what());
        }
        return std::string();
      }()
          .c_str(),
      "x");
}

}  // namespace
}  // namespace cohort::internal
