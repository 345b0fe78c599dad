// The one function that makes features of columns.
#pragma once

#include <cohort/cohort.h>

#include <string>
#include <vector>

namespace tabular {

// The columns that hold what a model cannot tell from their values.
struct Roles {
  std::string label;
  std::vector<std::string> texts;  // strings of several words
};

// Errors of the function: InvalidArgument (one of .texts is no column of strings).
cohort::transform::PreprocessingFunction preprocessing(const Roles& roles);

}  // namespace tabular
