#include "cohort/core/cpu/huge_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

namespace cohort::internal {
namespace {

// Whether the mapping around `place` is marked for huge pages, as /proc/self/smaps says.
bool is_marked(const char* place) {
  std::ifstream maps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    uintptr_t begin = 0, end = 0;
    char dash = 0;
    if (words >> std::hex >> begin >> dash >> end && dash == '-') {
      const auto address = reinterpret_cast<uintptr_t>(place);
      inside = begin <= address && address < end;
    } else if (inside && line.starts_with("VmFlags:")) {
      return line.find(" hg") != std::string::npos;
    }
  }
  return false;
}

bool system_gives_them() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string modes;
  return std::getline(file, modes) && modes.find("[never]") == std::string::npos;
}

class HugePages : public ::testing::Test {
 protected:
  static constexpr size_t kBytes = 16 << 20;

  HugePages()
      : memory_(static_cast<char*>(
            ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
  ~HugePages() override { ::munmap(memory_, kBytes); }

  char* const memory_;
};

TEST_F(HugePages, AreForTheInsideOfLargeMemoryAndChangeNoContents) {
  ASSERT_NE(memory_, MAP_FAILED);
  for (size_t i = 0; i < kBytes; ++i) memory_[i] = static_cast<char>(i * 7 + i / 4096);
  prefer_huge_pages(memory_ + 100, kBytes - 200);  // begins and ends in the middle of a page
  int64_t wrong = 0;
  for (size_t i = 0; i < kBytes; ++i) wrong += memory_[i] != static_cast<char>(i * 7 + i / 4096);
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(is_marked(memory_ + kBytes / 2), system_gives_them());
}

TEST_F(HugePages, LittleMemoryIsLeftAlone) {
  ASSERT_NE(memory_, MAP_FAILED);
  prefer_huge_pages(memory_, (4 << 20) - 1);
  prefer_huge_pages(nullptr, 0);
  EXPECT_FALSE(is_marked(memory_));
  EXPECT_FALSE(is_marked(memory_ + (2 << 20)));
}

}  // namespace
}  // namespace cohort::internal
