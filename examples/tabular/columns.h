// The columns of a table, by what a model does with them.
#pragma once

#include <cohort/cohort.h>

#include <string>
#include <vector>

namespace tabular {

struct Columns {
  std::vector<std::string> numbers;
  std::vector<std::string> categories;  // strings of which there are few
  std::vector<std::string> texts;       // strings of words
};

// The columns of a dataset of batches (columns, label), among them the given `texts`.
// Errors: InvalidArgument (one of `texts` is no column of strings).
Columns columns_of(const cohort::data::Dataset& dataset, const std::vector<std::string>& texts);

}  // namespace tabular
