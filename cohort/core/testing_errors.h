// For tests of calls that fail.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace cohort {

// The text of the ErrorType that `call` throws; another class goes its way.
template <class ErrorType, class Call>
std::string thrown(Call&& call) {
  try {
    call();
  } catch (const ErrorType& error) {
    return error.what();
  }
  return "nothing was thrown";
}

namespace internal {

// Fails the test unless `call` throws an ErrorType whose text contains `text`.
template <class ErrorType, class Call>
void expect_error(Call&& call, const std::string& text) {
  try {
    call();
    ADD_FAILURE() << "no error; expected: " << text;
  } catch (const ErrorType& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr(text));
  }
}

}  // namespace internal
}  // namespace cohort
