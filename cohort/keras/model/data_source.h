// What a keras::Data holds.
#pragma once

#include <optional>
#include <variant>

#include "cohort/data/dataset.h"
#include "cohort/distribute/input/distributed_dataset.h"
#include "cohort/keras/model/data.h"

namespace cohort::internal {

struct DataSource {
  struct Rows {
    Structure x, y, sample_weight;  // the empty tuple: none
  };
  struct Creator {
    keras::DatasetCreator::Function fn;
    distribute::InputOptions options;
  };
  std::variant<Rows, data::Dataset, distribute::DistributedDataset, Creator> value;

  const Rows* rows() const { return std::get_if<Rows>(&value); }
};

// The number of rows that all leaves have. Errors: InvalidArgument (a scalar; they differ, naming
// the leaves; no leaf).
int64_t count_rows(const DataSource::Rows& rows);
// Rows [begin, end) of each.
DataSource::Rows slice_rows(const DataSource::Rows& rows, int64_t begin, int64_t end);
// x, (x, y) or (x, y, sample_weight).
Structure joined(const DataSource::Rows& rows);

}  // namespace cohort::internal
