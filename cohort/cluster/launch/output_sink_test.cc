#include "cohort/cluster/launch/output_sink.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>

#include "cohort/core/testing_file_size_limit.h"

namespace cohort::internal {
namespace {

struct OutputSinkTest : testing::Test {
  OutputSinkTest() {
    std::array<int, 2> ends;
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    out = UniqueFd(ends[0]);
    in = UniqueFd(ends[1]);
    ::fcntl(out.get(), F_SETFL, O_NONBLOCK);
  }
  void read_all(std::string& text) const {
    std::array<char, 4096> block;
    for (ssize_t count; (count = ::read(out.get(), block.data(), block.size())) > 0;) {
      text.append(block.data(), static_cast<size_t>(count));
    }
  }
  UniqueFd out;
  UniqueFd in;
};

TEST_F(OutputSinkTest, KeepsWhatTheReaderHasNoRoomFor) {
  OutputSink sink(in.get());
  EXPECT_LT(sink.waiting_fd(), 0);
  std::string written;
  for (int i = 0; sink.has_room(); ++i) {
    const std::string line(1000, static_cast<char>('a' + i % 26));
    sink.add(line);
    written += line;
  }
  EXPECT_GE(sink.waiting_fd(), 0);
  EXPECT_EQ(::fcntl(in.get(), F_GETFL) & O_NONBLOCK, 0);  // others share it
  std::string text;
  while (sink.waiting_fd() >= 0) {
    read_all(text);
    sink.write_some();
  }
  read_all(text);
  EXPECT_EQ(text, written);
  EXPECT_TRUE(sink.has_room());
}

TEST_F(OutputSinkTest, LinesForNobodyAreDropped) {
  struct sigaction ignore {};
  struct sigaction before {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, &before);
  OutputSink sink(in.get());
  out.reset();
  for (int i = 0; i < 1000; ++i) sink.add(std::string(1000, 'x'));
  ::sigaction(SIGPIPE, &before, nullptr);
  EXPECT_TRUE(sink.has_room());
  EXPECT_LT(sink.waiting_fd(), 0);
}

TEST_F(OutputSinkTest, GoesOnWhenAFullDiskHasRoomAgain) {
  struct sigaction ignore {};
  struct sigaction before {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGXFSZ, &ignore, &before);
  const std::string path = testing::TempDir() + "output_sink_test";
  const UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  OutputSink sink(file.get());
  const std::string first(2000, 'x');  // what is logged meanwhile is shorter
  sink.add(first);
  testing::internal::CaptureStderr();
  {
    const FileSizeLimit full(first.size());
    sink.add("lost\n");
    sink.add("lost, too\n");
  }
  const std::string said = testing::internal::GetCapturedStderr();
  ::sigaction(SIGXFSZ, &before, nullptr);
  EXPECT_THAT(said, testing::HasSubstr("is lost until it can"));
  EXPECT_EQ(said.find("is lost"), said.rfind("is lost"));  // said once
  sink.add("after\n");
  std::string text(3000, ' ');
  text.resize(static_cast<size_t>(::pread(file.get(), text.data(), text.size(), 0)));
  EXPECT_EQ(text, first + "after\n");
  ::unlink(path.c_str());
}

TEST_F(OutputSinkTest, KnowsTheSameFile) {
  const UniqueFd copy(::dup(in.get()));
  const UniqueFd other(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  EXPECT_TRUE(is_same_file(in.get(), copy.get()));
  EXPECT_FALSE(is_same_file(in.get(), other.get()));
}

}  // namespace
}  // namespace cohort::internal
