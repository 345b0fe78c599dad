#include "cohort/keras/datasets/idx.h"

#include <gmock/gmock.h>

#include "cohort/core/error.h"
#include "cohort/keras/datasets/testing_files.h"

namespace cohort::internal {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

IdxArray parse(const std::string& bytes, int rank) {
  return parse_idx({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, rank, "images");
}

auto fails_with(const std::string& bytes, int rank, const std::string& message) {
  EXPECT_THAT([&] { parse(bytes, rank); },
              ThrowsMessage<DataLossError>(AllOf(HasSubstr("images, byte "), HasSubstr(message))));
}

const std::string kValues = "abcdefghijkl";

TEST(IdxTest, ReadsPlainAndGzip) {
  const std::string plain = make_idx({2, 3, 2}, kValues);
  for (const std::string& bytes : {plain, gzip(plain)}) {
    const IdxArray array = parse(bytes, 3);
    EXPECT_EQ(array.shape, (std::vector<int64_t>{2, 3, 2}));
    EXPECT_EQ(std::string(array.values.begin(), array.values.end()), kValues);
  }
}

TEST(IdxTest, ReadsEmptyArrays) {
  EXPECT_EQ(parse(make_idx({0}, ""), 1).shape, std::vector<int64_t>{0});
  EXPECT_TRUE(parse(gzip(make_idx({0, 28, 28}, "")), 3).values.empty());
}

TEST(IdxTest, ReadsLargeCompressedArrays) {
  std::string values(3'000'000, 'x');
  for (size_t i = 0; i < values.size(); i += 97) values[i] = static_cast<char>(i >> 8);
  const IdxArray array = parse(gzip(make_idx({3'000'000}, values)), 1);
  EXPECT_EQ(std::string(array.values.begin(), array.values.end()), values);
  // As compressible as anything is.
  const std::string zeros(3'000'000, '\0');
  EXPECT_EQ(parse(gzip(make_idx({3'000'000}, zeros)), 1).values.size(), zeros.size());
}

TEST(IdxTest, RefusesOtherFormats) {
  fails_with("<html>not found</html>", 1, "no IDX file: it begins with the bytes 60 104");
  fails_with(std::string("\0\0\x0d\1\0\0\0\1\0\0\0\0", 12), 1, "IDX type 13");
  fails_with(make_idx({12}, kValues), 3, "1 dimensions instead of 3");
  fails_with("", 1, "4 bytes are expected here, but 0 are left");
}

TEST(IdxTest, ChecksLengthsBeforeTakingMemory) {
  const std::vector<uint32_t> huge = {0xffffffff, 0xffffffff, 0xffffffff};
  fails_with(make_idx(huge, kValues), 3, "which no file holds");
  fails_with(gzip(make_idx(huge, kValues)), 3, "which no file holds");
  fails_with(make_idx({0xffffffff}, kValues), 1, "declares 4294967295 bytes");
  fails_with(gzip(make_idx({0xffffffff}, kValues)), 1, "declares 4294967295 bytes");
  fails_with(make_idx({13}, kValues), 1, "at most 12 can follow");
  fails_with(gzip(make_idx({13}, kValues)), 1, "ends 1 bytes too early");
}

TEST(IdxTest, RefusesWhatFollows) {
  fails_with(make_idx({11}, kValues), 1, "1 bytes too many");
  fails_with(gzip(make_idx({11}, kValues)), 1, "more data than the header");
  for (size_t size = 1; size < 20; ++size) {
    fails_with(gzip(make_idx({12}, kValues)) + std::string(size, 'x'), 1,
               std::to_string(size) + " bytes too many after");
  }
}

// Whatever was done to a file, reading it gives the data or a DataLossError.
void expect_data_or_error(const std::string& bytes, const std::string& what) {
  try {
    const IdxArray array = parse(bytes, 3);
    EXPECT_EQ(std::string(array.values.begin(), array.values.end()), kValues) << what;
    EXPECT_EQ(array.shape, (std::vector<int64_t>{2, 3, 2})) << what;
  } catch (const DataLossError& error) {
    EXPECT_THAT(error.what(), HasSubstr("images, byte ")) << what;
  }
}

TEST(IdxTest, EveryTruncationIsAnError) {
  const std::string plain = make_idx({2, 3, 2}, kValues);
  for (const std::string& bytes : {plain, gzip(plain)}) {
    for (size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_THROW(parse(bytes.substr(0, size), 3), DataLossError) << size;
    }
  }
}

TEST(IdxTest, EveryFlippedBitOfACompressedFileIsNoticedOrHarmless) {
  const std::string bytes = gzip(make_idx({2, 3, 2}, kValues));
  for (size_t i = 0; i < bytes.size() * 8; ++i) {
    std::string changed = bytes;
    changed[i / 8] = static_cast<char>(changed[i / 8] ^ (1 << i % 8));
    expect_data_or_error(changed, "bit " + std::to_string(i));
  }
}

TEST(IdxTest, EveryChangedByteOfACompressedFileIsNoticedOrHarmless) {
  const std::string bytes = gzip(make_idx({2, 3, 2}, kValues));
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (int value = 0; value < 256; ++value) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(value);
      expect_data_or_error(changed, std::to_string(i) + " = " + std::to_string(value));
    }
  }
}

TEST(IdxTest, EveryFlippedBitOfAPlainHeaderIsNoticed) {
  const std::string bytes = make_idx({2, 3, 2}, kValues);
  for (size_t i = 0; i < 16 * 8; ++i) {
    std::string changed = bytes;
    changed[i / 8] = static_cast<char>(changed[i / 8] ^ (1 << i % 8));
    EXPECT_THROW(parse(changed, 3), DataLossError) << "bit " << i;
  }
}

TEST(IdxTest, ReadsFilesAndNamesThem) {
  const TemporaryFolder folder;
  const std::string path = folder.write("labels", make_idx({12}, kValues));
  EXPECT_EQ(read_idx_file(path, 1).values.size(), 12u);
  EXPECT_THAT([&] { read_idx_file(path, 3); }, ThrowsMessage<DataLossError>(HasSubstr(path)));
  EXPECT_THAT([&] { read_idx_file(folder / "none", 1); },
              ThrowsMessage<NotFoundError>(HasSubstr(folder / "none")));
  EXPECT_THROW(read_idx_file(folder.path(), 1), InvalidArgumentError);
}

}  // namespace
}  // namespace cohort::internal
