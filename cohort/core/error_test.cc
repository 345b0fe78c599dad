#include "cohort/core/error.h"

#include <gtest/gtest.h>

#include <new>
#include <set>
#include <string>

namespace cohort {
namespace {

TEST(CodeNameTest, GivesEachCodeItsCanonicalName) {
  EXPECT_EQ(code_name(Code::kOk), "OK");
  EXPECT_EQ(code_name(Code::kInvalidArgument), "INVALID_ARGUMENT");
  EXPECT_EQ(code_name(Code::kUnauthenticated), "UNAUTHENTICATED");
  EXPECT_EQ(code_name(static_cast<Code>(99)), "UNKNOWN");
  EXPECT_EQ(code_name(static_cast<Code>(-1)), "UNKNOWN");

  std::set<std::string_view> names;
  for (int code = 0; code <= 16; ++code) names.insert(code_name(static_cast<Code>(code)));
  EXPECT_EQ(names.size(), 17u);
}

// The class, too: each throws one of its own.
TEST(ErrorTest, EveryCodeGoesToItsClassAndBack) {
  using internal::throw_error;
  for (int number = 1; number <= static_cast<int>(Code::kUnauthenticated); ++number) {
    const auto code = static_cast<Code>(number);
    const auto error = internal::make_error(code, "what went wrong", "/job:worker/task:1");
    const internal::ErrorRecord record = internal::record_error(error);
    EXPECT_EQ(record.code, code);
    EXPECT_EQ(record.message, "what went wrong");
    EXPECT_EQ(record.task, "/job:worker/task:1");
  }
  EXPECT_THROW(throw_error(Code::kCancelled, ""), CancelledError);
  EXPECT_THROW(throw_error(Code::kUnknown, ""), UnknownError);
  EXPECT_THROW(throw_error(Code::kInvalidArgument, ""), InvalidArgumentError);
  EXPECT_THROW(throw_error(Code::kDeadlineExceeded, ""), DeadlineExceededError);
  EXPECT_THROW(throw_error(Code::kNotFound, ""), NotFoundError);
  EXPECT_THROW(throw_error(Code::kAlreadyExists, ""), AlreadyExistsError);
  EXPECT_THROW(throw_error(Code::kPermissionDenied, ""), PermissionDeniedError);
  EXPECT_THROW(throw_error(Code::kResourceExhausted, ""), ResourceExhaustedError);
  EXPECT_THROW(throw_error(Code::kFailedPrecondition, ""), FailedPreconditionError);
  EXPECT_THROW(throw_error(Code::kAborted, ""), AbortedError);
  EXPECT_THROW(throw_error(Code::kOutOfRange, ""), OutOfRangeError);
  EXPECT_THROW(throw_error(Code::kUnimplemented, ""), UnimplementedError);
  EXPECT_THROW(throw_error(Code::kInternal, ""), InternalError);
  EXPECT_THROW(throw_error(Code::kUnavailable, ""), UnavailableError);
  EXPECT_THROW(throw_error(Code::kDataLoss, ""), DataLossError);
  EXPECT_THROW(throw_error(Code::kUnauthenticated, ""), UnauthenticatedError);
}

TEST(ErrorTest, WhatIsNoCodeOfAnErrorIsOneAllTheSame) {
  EXPECT_THROW(internal::throw_error(Code::kOk, "failed with OK"), InternalError);
  EXPECT_THROW(internal::throw_error(static_cast<Code>(99), ""), UnknownError);
  EXPECT_THROW(internal::throw_error(static_cast<Code>(-1), ""), UnknownError);
}

TEST(ErrorTest, OfOtherExceptionsTheTextIsKept) {
  const auto other = internal::record_error(std::make_exception_ptr(std::runtime_error("text")));
  EXPECT_EQ(other.code, Code::kUnknown);
  EXPECT_EQ(other.message, "text");
  EXPECT_EQ(internal::record_error(std::make_exception_ptr(1)).code, Code::kUnknown);
}

TEST(ErrorTest, LackOfMemoryIsResourceExhausted) {
  const auto record = internal::record_error(std::make_exception_ptr(std::bad_alloc()));
  EXPECT_EQ(record.code, Code::kResourceExhausted);
  EXPECT_NE(record.message.find("memory"), std::string::npos);
  // Of a container that was to be larger than any memory.
  const auto length = internal::record_error(std::make_exception_ptr(std::length_error("vector")));
  EXPECT_EQ(length.code, Code::kResourceExhausted);
}

TEST(ErrorTest, EachClassCarriesItsCodeTextAndTask) {
  try {
    throw UnavailableError("worker 1 does not answer", "/job:worker/task:1");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kUnavailable);
    EXPECT_STREQ(error.what(), "worker 1 does not answer");
    EXPECT_EQ(error.task(), "/job:worker/task:1");
  }
}

TEST(ErrorTest, IsOfThisTaskUnlessSaidOtherwise) { EXPECT_EQ(NotFoundError("x").task(), ""); }

TEST(ErrorTest, ClassesAreDistinctAndCaughtAsRuntimeError) {
  EXPECT_THROW(throw DataLossError("x"), DataLossError);
  EXPECT_THROW(throw DataLossError("x"), std::runtime_error);
  static_assert(!std::is_base_of_v<InvalidArgumentError, OutOfRangeError>);
  EXPECT_EQ(FailedPreconditionError("x").code(), Code::kFailedPrecondition);
  EXPECT_EQ(DeadlineExceededError("x").code(), Code::kDeadlineExceeded);
  EXPECT_EQ(AlreadyExistsError("x").code(), Code::kAlreadyExists);
}

TEST(StrTest, JoinsPrintedForms) {
  EXPECT_EQ(internal::str("layer '", std::string("conv"), "' takes rank ", 4),
            "layer 'conv' takes rank 4");
}

}  // namespace
}  // namespace cohort
