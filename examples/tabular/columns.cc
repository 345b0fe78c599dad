#include "columns.h"

#include <algorithm>

namespace tabular {

namespace tf = cohort;

Columns columns_of(const tf::data::Dataset& dataset, const std::vector<std::string>& texts) {
  Columns columns;
  const tf::StructureSpec spec = dataset.element_spec();
  for (const auto& [name, column] : spec.members()[0].items()) {
    if (!column.leaf().is_string()) {
      columns.numbers.push_back(name);
    } else if (std::find(texts.begin(), texts.end(), name) != texts.end()) {
      columns.texts.push_back(name);
    } else {
      columns.categories.push_back(name);
    }
  }
  if (columns.texts.size() != texts.size()) {
    throw tf::InvalidArgumentError("--text names what is no column of strings");
  }
  return columns;
}

}  // namespace tabular
