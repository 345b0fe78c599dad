// For tests of what is refused.
#pragma once

#include <functional>
#include <string>

#include "cohort/core/error.h"

namespace cohort::distribute {

// The text of the InvalidArgumentError that `run` throws; "accepted" where it throws none.
template <class Run>
std::string refused(Run&& run) {
  try {
    run();
  } catch (const InvalidArgumentError& error) {
    return error.what();
  }
  return "accepted";
}

// The text of the Exception that `fn` throws.
template <class Exception>
std::string thrown(const std::function<void()>& fn) {
  try {
    fn();
  } catch (const Exception& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace cohort::distribute
