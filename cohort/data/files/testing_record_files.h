// For tests of datasets of record files.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cohort/core/text.h"
#include "cohort/data/dataset.h"
#include "cohort/data/test_util.h"
#include "cohort/data/testing_files.h"

namespace cohort::data {

inline std::vector<std::string> strings(DatasetIterator& iterator) {
  std::vector<std::string> all;
  while (auto element = iterator.next()) {
    for (std::string& value : element->strings().to_vector()) all.push_back(std::move(value));
  }
  return all;
}
inline std::vector<std::string> strings(const Dataset& dataset) {
  auto iterator = dataset.iterator();
  return strings(iterator);
}

struct RecordFiles : FilesTest {
  // "00", "01", ... in the first file, "10", ... in the second.
  std::vector<std::string> write_files(const std::vector<int>& sizes,
                                       const std::string& compression = "") {
    std::vector<std::string> files;
    for (size_t i = 0; i < sizes.size(); ++i) {
      std::vector<std::string> records;
      for (int k = 0; k < sizes[i]; ++k) records.push_back(internal::str(i, k));
      files.push_back(write_records(internal::str("f", i), records, compression));
    }
    return files;
  }
  void flip(const std::string& name, size_t byte) {
    std::string bytes = read(name);
    bytes.at(byte) ^= 1;
    write(name, bytes);
  }
};

}  // namespace cohort::data
