#include "cohort/core/files/memory_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "cohort/core/testing_fork.h"

namespace cohort::internal {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(MemoryFile, OtherProcessesReadItAgainAndAgain) {
  const std::string bytes(100'000, 'k');
  const MemoryFile file("a key", bytes);
  EXPECT_EQ(text_of(file.path()), bytes);
  EXPECT_EQ(in_forked_child([&] { return text_of(file.path()) + text_of(file.path()); }),
            bytes + bytes);
}

TEST(MemoryFile, IsForItsUserAloneAndNobodyChangesIt) {
  const MemoryFile file("a key", "text");
  struct stat status {};
  ASSERT_EQ(::stat(file.path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  EXPECT_EQ(status.st_uid, ::geteuid());
  const UniqueFd writer(::open(file.path().c_str(), O_WRONLY | O_CLOEXEC));
  EXPECT_LT(::write(writer.get(), "x", 1), 0);
  EXPECT_EQ(text_of(file.path()), "text");
}

TEST(MemoryFile, GoesWithTheProcessThatMadeIt) {
  const std::string path = in_forked_child([] {
    const MemoryFile file("a key", "text");
    const std::string path = file.path();
    return text_of(path) == "text" ? path : "unreadable";
  });
  EXPECT_EQ(path.substr(0, 6), "/proc/");
  EXPECT_FALSE(std::ifstream(path).is_open());
  std::string ended;
  { ended = MemoryFile("a key", "text").path(); }
  EXPECT_NE(text_of(ended), "text");
}

}  // namespace
}  // namespace cohort::internal
