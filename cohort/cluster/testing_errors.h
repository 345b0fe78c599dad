// For tests of texts of errors.
#pragma once

#include <string>

namespace cohort::internal {

// The text of the ErrorType that `call` throws; "no error" where it throws none.
template <class ErrorType, class Call>
std::string message_of(Call&& call) {
  try {
    call();
  } catch (const ErrorType& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace cohort::internal
