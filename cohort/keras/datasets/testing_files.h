// Files that the tests of the data sets write themselves.
#pragma once

#include <gtest/gtest.h>
#include <isa-l/igzip_lib.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace cohort::internal {

// An IDX file of unsigned bytes.
inline std::string make_idx(const std::vector<uint32_t>& shape, const std::string& values) {
  std::string bytes = {0, 0, 8, static_cast<char>(shape.size())};
  for (uint32_t size : shape) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(size >> shift);
  }
  return bytes + values;
}

inline std::string gzip(std::string bytes) {
  std::string compressed(bytes.size() * 2 + 1000, '\0');
  isal_zstream stream;
  isal_deflate_stateless_init(&stream);
  stream.gzip_flag = IGZIP_GZIP;
  stream.end_of_stream = 1;
  stream.flush = NO_FLUSH;
  stream.next_in = reinterpret_cast<uint8_t*>(bytes.data());
  stream.avail_in = static_cast<uint32_t>(bytes.size());
  stream.next_out = reinterpret_cast<uint8_t*>(compressed.data());
  stream.avail_out = static_cast<uint32_t>(compressed.size());
  EXPECT_EQ(isal_deflate_stateless(&stream), COMP_OK);
  compressed.resize(stream.total_out);
  return compressed;
}

// A folder of its own for each test, removed after it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = ::testing::TempDir() + "cohort_datasets_XXXXXX";
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace cohort::internal
