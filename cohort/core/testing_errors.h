// For tests of calls that fail.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace cohort::internal {

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

}  // namespace cohort::internal
