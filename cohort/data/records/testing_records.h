// Files of records for tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/files/crc32c.h"
#include "cohort/core/files/simulated_file_system.h"
#include "cohort/data/records/record_reader.h"
#include "cohort/data/records/tfrecord_writer.h"

namespace cohort::internal {

// Of different lengths, some of them 0, and contents.
inline std::vector<std::string> sample_records(int count) {
  std::vector<std::string> records;
  for (int i = 0; i < count; ++i) {
    records.push_back(std::string(static_cast<size_t>(i * i % 97), static_cast<char>(i)) +
                      (i % 5 == 0 ? "" : std::to_string(i)));
  }
  return records;
}

inline std::vector<std::string> read_all(RecordReader& reader) {
  std::vector<std::string> all;
  for (RecordRun run = reader.next(); !run.records.empty(); run = reader.next()) {
    all.insert(all.end(), run.records.begin(), run.records.end());
  }
  return all;
}

// The text of the DataLossError that `run` throws.
template <class Run>
std::string data_loss(Run&& run) {
  try {
    run();
  } catch (const DataLossError& error) {
    return error.what();
  }
  return "no DataLossError";
}

inline SimulatedFileSystem& kept_files() {
  static auto* const kept = new std::vector<std::unique_ptr<SimulatedFileSystem>>;
  return *kept->emplace_back(std::make_unique<SimulatedFileSystem>());
}

struct RecordFilesTest : testing::Test {
  void write_records(const std::string& path, const std::vector<std::string>& records,
                     Compression compression = Compression::kNone) {
    io::TFRecordWriter writer(files, path,
                              {.compression_type = std::string(compression_name(compression))});
    for (const std::string& record : records) writer.write(record);
    writer.close();
  }

  // Outlives the test: calls that a test gave up go on in it.
  SimulatedFileSystem& files = kept_files();
};

}  // namespace cohort::internal
