// From files to what the model takes.
#pragma once

#include <cohort/cohort.h>

#include <cstdint>
#include <optional>
#include <string>

#include "columns.h"
#include "options.h"

namespace tabular {

// Batches (columns, label) of `batch_size` rows; `epochs`: as make_csv_dataset's num_epochs.
cohort::data::Dataset read_table(const std::string& path, int64_t batch_size,
                                 std::optional<int64_t> epochs, const Options& options);

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
