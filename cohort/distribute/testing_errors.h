// For tests of what is refused.
#pragma once

#include <string>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"

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

using cohort::thrown;

}  // namespace cohort::distribute
