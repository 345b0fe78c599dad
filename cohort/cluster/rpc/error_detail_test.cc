#include "cohort/cluster/rpc/error_detail.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "cohort/cluster/rpc/coordinator_errors.h"
#include "cohort/core/bytes/wire.h"
#include "cohort/core/testing_errors.h"

namespace cohort::internal::rpc {
namespace {

using testing::HasSubstr;

const ErrorDetail kLost = {.peer = "/job:worker/task:2",
                           .incarnation = 0xfedcba9876543210,
                           .generation = 3,
                           .phase = "step",
                           .step = 41,
                           .rpc = "collective/exchange",
                           .system_error = 104,
                           .cause = Cause::kStartedAgain};

TEST(ErrorDetail, OfEveryCodeAllOfAnErrorArrives) {
  for (int number = 1; number <= static_cast<int>(Code::kUnauthenticated); ++number) {
    const auto code = static_cast<Code>(number);
    const auto error = decode_error(
        encode_error(make_error(code, "lost \xc3\xa9\n'x'", "/job:worker/task:1", kLost)));
    const ErrorRecord record = record_error(error);
    EXPECT_EQ(record.code, code);
    EXPECT_EQ(record.message, "lost \xc3\xa9\n'x'");
    EXPECT_EQ(record.task, "/job:worker/task:1");
    EXPECT_EQ(detail_of(error), kLost);
  }
}

TEST(ErrorDetail, ACauseOfALaterVersionIsAnother) {
  const std::string known = encode_error(make_error(Code::kAborted, "fenced", "", kLost));
  WireWriter later;
  later.varint(5, 1000);
  const auto error = decode_error(known + std::move(later).str());
  EXPECT_EQ(detail_of(error).cause, Cause::kOther);
  EXPECT_EQ(detail_of(error).peer, kLost.peer);
}

TEST(ErrorDetail, OnlyThePeerOfACallIsUnanswering) {
  const TaskId worker{"worker", 0};
  const auto answered = make_error(Code::kUnavailable, "no route", "/job:worker/task:0",
                                   {.peer = "/job:ps/task:0", .cause = Cause::kNoAnswer});
  EXPECT_FALSE(is_unanswered(answered, Code::kUnavailable, worker));
  const auto lost = no_answer(Code::kUnavailable, "its connection broke", worker, "closures/run");
  EXPECT_TRUE(is_unanswered(lost, Code::kUnavailable, worker));
  EXPECT_FALSE(is_unanswered(lost, Code::kDeadlineExceeded, worker));
  EXPECT_EQ(detail_of(lost).rpc, "closures/run");
}

TEST(ErrorDetail, IsReadFromTheClassThatUsersCatch) {
  try {
    std::rethrow_exception(make_error(Code::kUnavailable, "gone", "", kLost));
  } catch (const UnavailableError& error) {
    ASSERT_NE(error_detail(error), nullptr);
    EXPECT_EQ(error_detail(error)->peer, "/job:worker/task:2");
    EXPECT_EQ(error_detail(error)->system_error, 104);
  }
}

TEST(ErrorDetail, ALostPsTasksErrorArrivesAsWhatItIs) {
  const auto arrived = [](Code code, Cause cause) {
    return decode_error(encode_error(
        make_error(code, "lost it", "/job:ps/task:1", {.peer = "/job:ps/task:1", .cause = cause})));
  };
  try {
    std::rethrow_exception(arrived(Code::kUnavailable, Cause::kPsLost));
  } catch (const distribute::coordinator::PSUnavailableError& error) {
    EXPECT_STREQ(error.what(), "lost it");
    EXPECT_EQ(error.task(), "/job:ps/task:1");
    ASSERT_NE(error_detail(error), nullptr);
    EXPECT_EQ(error_detail(error)->peer, "/job:ps/task:1");
  }
  for (const auto& other :
       {arrived(Code::kUnavailable, Cause::kNoAnswer), arrived(Code::kAborted, Cause::kPsLost)}) {
    try {
      std::rethrow_exception(other);
    } catch (const distribute::coordinator::PSUnavailableError&) {
      ADD_FAILURE() << "an error of another kind";
    } catch (const Error&) {
    }
  }
}

// Catches of the class that the function threw, of all errors and of std::exception go on catching
// it.
TEST(ErrorDetail, AnInputsErrorIsOfItsClassAndAClosureInputError) {
  for (int number = 1; number <= static_cast<int>(Code::kUnauthenticated); ++number) {
    const auto code = static_cast<Code>(number);
    const auto error = decode_error(
        encode_error(make_error(code, "no such file", "", {.cause = Cause::kInputFailed})));
    try {
      std::rethrow_exception(error);
    } catch (const distribute::coordinator::ClosureInputError& input) {
      EXPECT_STREQ(input.error().what(), "no such file");
      EXPECT_EQ(input.error().code(), code);
    }
    EXPECT_THROW(std::rethrow_exception(error), std::exception);
    EXPECT_THROW(std::rethrow_exception(error), Error);
    EXPECT_EQ(record_error(error).code, code);
    EXPECT_EQ(detail_of(error).cause, Cause::kInputFailed);
  }
  const auto missing =
      make_error(Code::kNotFound, "no such file", "", {.cause = Cause::kInputFailed});
  EXPECT_THROW(std::rethrow_exception(missing), NotFoundError);
}

TEST(ErrorDetail, OfAPlainErrorThereIsNone) {
  EXPECT_EQ(error_detail(NotFoundError("x")), nullptr);
  EXPECT_EQ(error_detail(std::runtime_error("x")), nullptr);
  const auto error = decode_error(encode_error(std::make_exception_ptr(NotFoundError("x"))));
  EXPECT_EQ(detail_of(error), ErrorDetail{});
  EXPECT_THROW(std::rethrow_exception(error), NotFoundError);
}

TEST(ErrorDetail, WhatIsNoErrorOfOursIsUnknownWithItsText) {
  const auto error =
      decode_error(encode_error(std::make_exception_ptr(std::runtime_error("boom"))));
  expect_error<UnknownError>([&] { std::rethrow_exception(error); }, "boom");
}

TEST(ErrorDetail, LongTextsAreCutBetweenCharacters) {
  std::string text;
  while (text.size() < 10000) text += "\xe2\x82\xac";
  const std::string bytes =
      encode_error(make_error(Code::kAborted, text, std::string(1000, 't'),
                              {.peer = std::string(70000, 'p'), .phase = text, .rpc = text}));
  EXPECT_LT(bytes.size(), 6u << 10);
  const ErrorRecord record = record_error(decode_error(bytes));
  EXPECT_THAT(record.message, HasSubstr("more bytes)"));
  EXPECT_EQ(record.message.find("\\x"), std::string::npos);
}

TEST(ErrorDetail, EveryTruncationIsAnErrorAllTheSame) {
  const std::string bytes =
      encode_error(make_error(Code::kAborted, "fenced", "/job:ps/task:0", kLost));
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_NE(decode_error(std::string_view(bytes).substr(0, size)), nullptr) << size;
  }
  expect_error<UnknownError>([&] { std::rethrow_exception(decode_error(bytes.substr(0, 5))); },
                             "cannot be read");
}

TEST(ErrorDetail, UnknownCodesAndFieldsArePassedOver) {
  const std::string later =
      WireWriter().varint(1, 10).bytes(2, "fenced").bytes(9, "of a later version").str();
  expect_error<AbortedError>([&] { std::rethrow_exception(decode_error(later)); }, "fenced");
  for (const uint64_t code : {uint64_t{0}, uint64_t{17}, uint64_t{1} << 40, ~uint64_t{0}}) {
    const std::string strange = WireWriter().varint(1, code).bytes(2, "what it said").str();
    expect_error<UnknownError>([&] { std::rethrow_exception(decode_error(strange)); },
                               "what it said");
  }
}

TEST(ErrorDetail, TextsFromTheWireCannotCommandATerminal) {
  const std::string bytes =
      WireWriter().varint(1, 13).bytes(2, "\x1b[2J\xff\xc2\x9b red\nline").str();
  expect_error<InternalError>([&] { std::rethrow_exception(decode_error(bytes)); },
                              "\\x1b[2J\\xff\\xc2\\x9b red\nline");
}

}  // namespace
}  // namespace cohort::internal::rpc
