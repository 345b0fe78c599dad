// From files to what the model takes.
#pragma once

#include <cohort/cohort.h>

#include <string>

#include "columns.h"
#include "options.h"

namespace tabular {

// One pass over the table, in batches (columns, label).
cohort::data::Dataset read_table(const std::string& path, const Options& options);

// The classes of the label, as numbers from 0 on.
class Labels {
 public:
  // Reads all labels of `table`.
  explicit Labels(const cohort::data::Dataset& table);

  int64_t num_classes() const;
  cohort::Tensor operator()(const cohort::Structure& label) const;

 private:
  bool are_strings_;
  cohort::keras::layers::StringLookup strings_;
  cohort::keras::layers::IntegerLookup integers_;
};

// Batches (features, class). The features are {"numbers": [n, k]} and a tensor of strings [n] for
// each other column, by its name.
cohort::data::Dataset features_of(const cohort::data::Dataset& table, const Columns& columns,
                                  const Labels& labels);

}  // namespace tabular
