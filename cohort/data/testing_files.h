// Files for the tests of datasets.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "cohort/data/records/tfrecord_writer.h"

namespace cohort::data {

// A directory of its own, which is removed with what is in it.
struct FilesTest : testing::Test {
  FilesTest() {
    std::string pattern = testing::TempDir() + "cohort_data_test.XXXXXX";
    directory = ::mkdtemp(pattern.data());
  }
  ~FilesTest() override { std::filesystem::remove_all(directory); }

  std::string path(const std::string& name) const { return directory + "/" + name; }

  std::string write(const std::string& name, std::string_view bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }
  std::string read(const std::string& name) const {
    std::ifstream in(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::string write_records(const std::string& name, const std::vector<std::string>& records,
                            const std::string& compression = "") const {
    io::TFRecordWriter writer(path(name), {.compression_type = compression});
    for (const std::string& record : records) writer.write(record);
    writer.close();
    return path(name);
  }

  std::string directory;
};

}  // namespace cohort::data
