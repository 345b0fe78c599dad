// Options of Dataset::list_files, the names of the files that match patterns:
//
//   auto names = data::Dataset::list_files("data/train-*.tfrecord", {.seed = 1});
//   auto records = data::TFRecordDataset(names);
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace cohort::data {

struct ListFilesOptions {
  // A new order for each pass. Workers that divide a shuffled list between them need the same seed;
  // otherwise some files are read twice and others never. Dividing a list without a seed logs a
  // warning.
  bool shuffle = true;
  // Default: from random::set_seed, or a random one.
  std::optional<uint64_t> seed = {};
  // The time limit for listing each pattern, beyond which it is a DeadlineExceeded error. 0: none.
  std::chrono::milliseconds read_timeout = std::chrono::seconds(60);
};

}  // namespace cohort::data
