#include "cohort/data/records/blob_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"
#include "cohort/core/files/simulated_file_system.h"

namespace cohort::internal {
namespace {

using testing::HasSubstr;

class BlobFileTest : public testing::Test {
 protected:
  void write(const std::vector<std::string>& blobs, std::string_view info) {
    BlobFileWriter writer(files_, "a");
    for (const std::string& blob : blobs) writer.append(blob);
    writer.finish(info);
  }
  std::string bytes() {
    const auto file = files_.open("a");
    std::string bytes(file->size(), '\0');
    file->read(0, bytes.data(), bytes.size());
    return bytes;
  }
  // The text of the error that opening and reading these bytes ends in; "" where there is none.
  std::string problem(std::string_view bytes) {
    files_.create("b")->append(bytes);
    try {
      const BlobFile file(files_.open("b"), "b");
      for (int64_t i = 0; i < file.size(); ++i) file.read(i);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  SimulatedFileSystem files_;
};

TEST_F(BlobFileTest, ReadsAtAnyPositionWhatWasWritten) {
  const std::vector<std::string> blobs = {"one", "", std::string(1000, '\0'), "four"};
  write(blobs, "about them");
  const BlobFile file(files_.open("a"), "a");
  ASSERT_EQ(file.size(), 4);
  EXPECT_EQ(file.info(), "about them");
  for (int64_t i : {3, 0, 2, 1}) EXPECT_EQ(file.read(i), blobs[i]);
  write({}, "");
  EXPECT_EQ(BlobFile(files_.open("a"), "a").size(), 0);
}

TEST_F(BlobFileTest, AppearsWhole) {
  write({"old"}, "");
  {
    BlobFileWriter writer(files_, "a");
    writer.append("new");
    EXPECT_EQ(BlobFile(files_.open("a"), "a").read(0), "old");
  }
  EXPECT_EQ(BlobFile(files_.open("a"), "a").read(0), "old");
  EXPECT_EQ(files_.list("").size(), 1u);
}

TEST_F(BlobFileTest, EveryFlippedBitAndEveryTruncationIsFound) {
  write({"one", "", "three"}, "info");
  const std::string whole = bytes();
  ASSERT_EQ(problem(whole), "");
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] ^= static_cast<char>(1 << bit % 8);
    EXPECT_THAT(problem(damaged), HasSubstr("'b'")) << bit;
  }
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_THAT(problem(whole.substr(0, length)), HasSubstr("'b'")) << length;
  }
}

TEST_F(BlobFileTest, SaysWhatIsWrong) {
  write({"one", "three"}, "info");
  std::string damaged = bytes();
  damaged[8 + 12 + 3 + 4 + 12] ^= 1;  // the first byte of the second blob
  EXPECT_EQ(problem(damaged),
            "file 'b', byte 27: the checksum of element 1 is wrong; remove it and have it written "
            "anew");
  EXPECT_THAT(problem("something else"), HasSubstr("was not written by save() or cache()"));
}

}  // namespace
}  // namespace cohort::internal
