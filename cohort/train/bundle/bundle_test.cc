#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "cohort/core/error.h"
#include "cohort/core/files/crc32c.h"
#include "cohort/core/files/simulated_file_system.h"
#include "cohort/core/testing_errors.h"
#include "cohort/train/bundle/bundle_reader.h"
#include "cohort/train/bundle/bundle_writer.h"

namespace cohort::internal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using train::TensorSlice;

template <class T>
std::string_view bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

template <class T>
std::vector<T> read(const BundleReader& bundle, const std::string& name) {
  std::vector<T> values(bundle.entry(name).size / sizeof(T));
  bundle.read(name, values.data());
  return values;
}

std::vector<float> counting(size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.f);
  return values;
}

struct BundleTest : testing::Test {
  BundleTest() { files.make_directories("dir"); }

  void write_one(float value) {
    BundleWriter bundle(files, "dir/ckpt");
    bundle.add("w", {BundleType::kFloat32, {1}}, bytes_of(std::vector<float>{value}));
    bundle.finish();
  }
  float read_one() { return read<float>(BundleReader(files, "dir/ckpt"), "w")[0]; }

  SimulatedFileSystem files;
};

// A file of another process, with two tensors.
struct OtherFile {
  BundleWriter::Stored first, second;
  std::string name;

  OtherFile(FileSystem& files, const BundleWriter::OthersTarget& target, float value) {
    name = target.file_prefix + "3";
    BundleDataFile file(files, join_path("dir", name), 8);
    first = {0, 0, 4, mask_crc(file.append(bytes_of(std::vector<float>{value})))};
    second = {0, 4, 4, mask_crc(file.append(bytes_of(std::vector<float>{value + 1})))};
    file.finish();
    file.let_go();
  }
};

TEST_F(BundleTest, AdoptsFilesOfOthers) {
  for (const float value : {10.f, 20.f}) {  // the second in the first one's place
    BundleWriter bundle(files, "dir/ckpt");
    const BundleWriter::OthersTarget target = bundle.target_for_others();
    EXPECT_TRUE(files.exists(join_path("dir", target.probe)));
    OtherFile other(files, target, value);
    other.first.file = other.second.file = bundle.adopt(other.name);
    bundle.add("own", {BundleType::kFloat32, {1}}, bytes_of(std::vector<float>{value - 1}));
    bundle.add("first", {BundleType::kFloat32, {1}}, other.first);
    bundle.add_slice("parts", {BundleType::kFloat32, {2}}, {{1}, {1}}, other.second);
    bundle.add_slice("parts", {BundleType::kFloat32, {2}}, {{0}, {1}},
                     bytes_of(std::vector<float>{value + 2}));
    bundle.finish();
    const BundleReader reader(files, "dir/ckpt");
    EXPECT_EQ(read<float>(reader, "own")[0], value - 1);
    EXPECT_EQ(read<float>(reader, "first")[0], value);
    std::vector<float> parts(2);
    reader.read("parts", parts.data());
    EXPECT_THAT(parts, ElementsAre(value + 2, value + 1));
    EXPECT_EQ(list_data_files(files, "dir/ckpt").size(), 2u);
  }
  EXPECT_EQ(files.list("dir").size(), 3u);
}

TEST_F(BundleTest, RemovesAdoptedFilesThatNobodyNeeds) {
  {
    BundleWriter bundle(files, "dir/ckpt");
    OtherFile other(files, bundle.target_for_others(), 1);
    other.first.file = bundle.adopt(other.name);
    EXPECT_THROW(bundle.adopt("another"), NotFoundError);
    other.first.size = 12;
    EXPECT_THROW(bundle.add("too_long", {BundleType::kFloat32, {3}}, other.first), DataLossError);
    other.first.size = 8;
    EXPECT_THROW(bundle.add("other_size", {BundleType::kFloat32, {1}}, other.first),
                 InvalidArgumentError);
  }
  EXPECT_TRUE(files.list("dir").empty());
}

TEST_F(BundleTest, ReadsWhatWasWritten) {
  const std::vector<float> w = counting(6);
  const std::vector<int64_t> step = {-7};
  {
    BundleWriter bundle(files, "dir/ckpt");
    bundle.add("w", {BundleType::kFloat32, {2, 3}}, bytes_of(w));
    bundle.add("a/step", {BundleType::kInt64, {}}, bytes_of(step));
    bundle.add("empty", {BundleType::kFloat64, {0, 4}}, "");
    const std::vector<std::string_view> words = {"one", "", std::string_view("a\0b", 3)};
    bundle.add_strings("words", {3}, words);
    bundle.finish();
  }
  const BundleReader bundle(files, "dir/ckpt");
  EXPECT_EQ(bundle.entries().size(), 4u);
  EXPECT_THAT(bundle.entry("w").shape, ElementsAre(2, 3));
  EXPECT_EQ(read<float>(bundle, "w"), w);
  EXPECT_EQ(read<int64_t>(bundle, "a/step"), step);
  EXPECT_EQ(bundle.entry("empty").size, 0u);
  EXPECT_THAT(bundle.read_strings("words"), ElementsAre("one", "", std::string("a\0b", 3)));
  for (const auto& [name, entry] : bundle.entries()) bundle.verify(name);
  EXPECT_THAT(files.list("dir"), ElementsAre("ckpt.data-00000-of-00001", "ckpt.index"));
}

TEST_F(BundleTest, APartitionedTensorIsReadWholeAndInOtherParts) {
  // Rows 0 to 2 and 3 of a [4, 3] tensor.
  const std::vector<float> all = counting(12);
  {
    BundleWriter bundle(files, "dir/ckpt");
    const BundleTensor whole = {BundleType::kFloat32, {4, 3}};
    bundle.add_slice("w", whole, {{0, 0}, {3, 3}}, bytes_of(all).substr(0, 36));
    bundle.add_slice("w", whole, {{3, 0}, {1, 3}}, bytes_of(all).substr(36));
    bundle.finish();
  }
  const BundleReader bundle(files, "dir/ckpt");
  EXPECT_EQ(bundle.entries().size(), 1u);
  std::vector<float> out(12);
  bundle.read("w", out.data());
  EXPECT_EQ(out, all);
  std::vector<float> middle(4);
  bundle.read_slice("w", {{2, 1}, {2, 2}}, middle.data());
  EXPECT_THAT(middle, ElementsAre(7, 8, 10, 11));
  EXPECT_THROW(bundle.read_slice("w", {{2, 1}, {3, 2}}, middle.data()), InvalidArgumentError);
}

TEST_F(BundleTest, PartsOfAWholeTensorCanBeRead) {
  const std::vector<float> all = counting(6);
  {
    BundleWriter bundle(files, "dir/ckpt");
    bundle.add("w", {BundleType::kFloat32, {3, 2}}, bytes_of(all));
    bundle.finish();
  }
  std::vector<float> rows(4);
  BundleReader(files, "dir/ckpt").read_slice("w", {{1, 0}, {2, 2}}, rows.data());
  EXPECT_THAT(rows, ElementsAre(2, 3, 4, 5));
}

TEST_F(BundleTest, OverwritingKeepsTheOldOneUntilTheNewOneIsThere) {
  write_one(1);
  {
    BundleWriter bundle(files, "dir/ckpt");
    bundle.add("w", {BundleType::kFloat32, {1}}, bytes_of(std::vector<float>{2}));
    EXPECT_EQ(read_one(), 1);
  }  // given up
  EXPECT_EQ(read_one(), 1);
  EXPECT_THAT(files.list("dir"), ElementsAre("ckpt.data-00000-of-00001", "ckpt.index"));
  write_one(3);
  EXPECT_EQ(read_one(), 3);
  EXPECT_THAT(files.list("dir"), ElementsAre("ckpt.data-00001-of-00002", "ckpt.index"));
  write_one(4);
  EXPECT_EQ(read_one(), 4);
  EXPECT_THAT(files.list("dir"), ElementsAre("ckpt.data-00000-of-00001", "ckpt.index"));
}

// Rewrites the checkpoint, `times` times in a row, just before one of the calls that a reader
// makes; whether there were so many calls. The second rewrite brings back the first one's names of
// data files.
class BundleRewrittenTest : public BundleTest, public testing::WithParamInterface<int> {
 protected:
  // Both tensors have the value.
  void write_two(float value) {
    BundleWriter bundle(files, "dir/ckpt");
    for (const char* name : {"a", "b"}) {
      bundle.add(name, {BundleType::kFloat32, {1}}, bytes_of(std::vector<float>{value}));
    }
    bundle.finish();
  }
  bool read_while_rewritten(int64_t at, std::vector<float>& values) {
    int64_t calls = 0;
    bool rewritten = false;
    files.set_hook([&](const std::string&) {
      if (rewritten || ++calls != at) return;
      rewritten = true;
      for (int i = 0; i < GetParam(); ++i) write_two(static_cast<float>(2 + i));
    });
    {
      const BundleReader bundle(files, "dir/ckpt");
      values = {read<float>(bundle, "a")[0], read<float>(bundle, "b")[0]};
    }
    files.set_hook({});
    return rewritten;
  }
};
INSTANTIATE_TEST_SUITE_P(Times, BundleRewrittenTest, testing::Values(1, 2, 3));

TEST_P(BundleRewrittenTest, ReadsOneSaveWhole) {
  bool saw_before = false;
  bool saw_after = false;
  bool was_rewritten = true;
  for (int64_t call = 1; was_rewritten; ++call) {
    write_two(1);
    std::vector<float> values;
    ASSERT_NO_THROW(was_rewritten = read_while_rewritten(call, values)) << "at call " << call;
    ASSERT_EQ(values[0], values[1]) << "at call " << call;
    const float last = static_cast<float>(1 + GetParam());
    ASSERT_TRUE(values[0] == 1 || values[0] == last) << values[0] << " at call " << call;
    saw_before = saw_before || (was_rewritten && values[0] == 1);
    saw_after = saw_after || values[0] == last;
  }
  EXPECT_TRUE(saw_before);
  EXPECT_TRUE(saw_after);
}

TEST_F(BundleTest, OneThatIsRewrittenAgainAndAgainIsGivenUp) {
  write_one(1);
  bool writing = false;
  files.set_hook([&](const std::string& call) {
    if (writing || !call.starts_with("opening 'dir/ckpt.data")) return;
    writing = true;
    write_one(2);
    writing = false;
  });
  expect_error<UnavailableError>([&] { BundleReader(files, "dir/ckpt"); },
                                 "'dir/ckpt' was rewritten while it was read; read it again");
}

// By a copy over the files: what is open is another save then, and the checksums say so.
TEST_F(BundleTest, OneThatIsCopiedOverWhileItIsOpenIsFound) {
  write_one(1);
  const BundleReader bundle(files, "dir/ckpt");
  SimulatedFileSystem others;
  others.make_directories("dir");
  {
    BundleWriter other(others, "dir/ckpt");
    other.add("w", {BundleType::kFloat32, {1}}, bytes_of(std::vector<float>{2}));
    other.finish();
  }
  const std::string data = "/dir/ckpt.data-00000-of-00001";
  files.set_content(data, others.content(data));
  expect_error<DataLossError>([&] { read<float>(bundle, "w"); }, "checksum");
  files.set_content("/dir/ckpt.index", others.content("/dir/ckpt.index"));
  expect_error<UnavailableError>([&] { read<float>(bundle, "w"); }, "was rewritten");
}

TEST_F(BundleTest, RefusesAnIndexThatReadersRefuse) {
  write_one(1);
  {
    BundleWriter bundle(files, "dir/ckpt");
    for (int i = 0; i < 400; ++i) {  // all but their ends is in the file once for sixteen
      bundle.add(std::string(60'000, 'x') + std::to_string(i), {BundleType::kUint8, {}}, "1");
    }
    expect_error<InvalidArgumentError>([&] { bundle.finish(); },
                                       "of 400 tensors would have an index");
  }
  EXPECT_EQ(read_one(), 1);
  EXPECT_THAT(files.list("dir"), ElementsAre("ckpt.data-00000-of-00001", "ckpt.index"));
}

TEST_F(BundleTest, RefusesWhatDoesNotFit) {
  BundleWriter bundle(files, "dir/ckpt");
  EXPECT_THROW(bundle.add("w", {BundleType::kFloat32, {2}}, "1234"), InvalidArgumentError);
  bundle.add("v", {BundleType::kFloat32, {1}}, "1234");
  EXPECT_THROW(bundle.add("v", {BundleType::kFloat32, {1}}, "1234"), InvalidArgumentError);
  EXPECT_THROW(bundle.add("", {BundleType::kFloat32, {1}}, "1234"), InvalidArgumentError);
  const BundleTensor whole = {BundleType::kFloat32, {2}};
  EXPECT_THROW(bundle.add_slice("s", whole, {{1}, {2}}, "12345678"), InvalidArgumentError);
  bundle.add_slice("s", whole, {{1}, {1}}, "1234");
  EXPECT_THROW(bundle.finish(), InvalidArgumentError);
}

TEST_F(BundleTest, RefusesNamesThatReadersWouldTakeForPartsOrNotAtAll) {
  BundleWriter bundle(files, "dir/ckpt");
  const BundleTensor one = {BundleType::kFloat32, {1}};
  const std::string_view word[] = {"word"};
  for (const std::string& name : {std::string("\0w", 2), std::string(100'000, 'n')}) {
    EXPECT_THROW(bundle.add(name, one, "1234"), InvalidArgumentError);
    EXPECT_THROW(bundle.add_strings(name, {1}, word), InvalidArgumentError);
    EXPECT_THROW(bundle.add_slice(name, one, {{0}, {1}}, "1234"), InvalidArgumentError);
  }
  bundle.finish();
  EXPECT_TRUE(BundleReader(files, "dir/ckpt").entries().empty());
}

TEST_F(BundleTest, RefusesNumbersThatHaveNoBytes) {
  BundleWriter bundle(files, "dir/ckpt");
  EXPECT_THROW(bundle.add("w", {BundleType::kString, {2}}, ""), InvalidArgumentError);
  // 2^60 elements of 16 bytes: their size, modulo 2^64, is 0.
  const BundleTensor huge = {BundleType::kComplex128, {int64_t{1} << 60}};
  EXPECT_THROW(bundle.add("w", huge, ""), InvalidArgumentError);
}

TEST_F(BundleTest, RefusesPartsThatOverlapAndLeaveAsLargeAGap) {
  BundleWriter bundle(files, "dir/ckpt");
  const BundleTensor whole = {BundleType::kUint8, {2, 2}};
  bundle.add_slice("w", whole, {{0, 0}, {1, 2}}, "ab");
  bundle.add_slice("w", whole, {{0, 0}, {2, 1}}, "ac");
  EXPECT_THROW(bundle.finish(), InvalidArgumentError);
}

TEST_F(BundleTest, APartThatIsRefusedLeavesNothingBehind) {
  BundleWriter bundle(files, "dir/ckpt");
  EXPECT_THROW(bundle.add_slice("w", {BundleType::kUint8, {2}}, {{0}, {2}}, "abc"),
               InvalidArgumentError);
  bundle.finish();
  EXPECT_TRUE(BundleReader(files, "dir/ckpt").entries().empty());
}

TEST_F(BundleTest, ReadingWhatIsNotThere) {
  EXPECT_THROW(BundleReader(files, "dir/none"), NotFoundError);
  write_one(1);
  const BundleReader bundle(files, "dir/ckpt");
  EXPECT_THROW(bundle.entry("v"), NotFoundError);
  EXPECT_THROW(bundle.read_strings("w"), InvalidArgumentError);
  files.remove("dir/ckpt.data-00000-of-00001");
  EXPECT_THROW(BundleReader(files, "dir/ckpt"), NotFoundError);
  EXPECT_EQ(read<float>(bundle, "w")[0], 1) << "an open checkpoint stays readable";
}

}  // namespace
}  // namespace cohort::internal
