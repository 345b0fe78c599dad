// For tests: a text file that is removed at the end, with its index if it has one.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>

namespace cohort {

class TextFile {
 public:
  explicit TextFile(std::string_view content) : path_(testing::TempDir() + "text_file.XXXXXX") {
    const int fd = ::mkstemp(path_.data());
    EXPECT_GE(fd, 0) << path_;
    ::close(fd);
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~TextFile() {
    std::remove(path_.c_str());
    std::remove((path_ + ".cohort-index").c_str());
  }
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace cohort
