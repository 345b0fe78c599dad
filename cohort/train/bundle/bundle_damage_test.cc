// Row 36 of the fault matrix: whatever happens to a checkpoint's files, reading it ends in an
// error.
#include <gtest/gtest.h>

#include <functional>

#include "cohort/core/error.h"
#include "cohort/core/files/simulated_file_system.h"
#include "cohort/train/bundle/bundle_reader.h"
#include "cohort/train/bundle/bundle_writer.h"

namespace cohort::internal {
namespace {

void write_sample(FileSystem& files, const std::string& prefix, char seed) {
  BundleWriter bundle(files, prefix);
  const std::string values(40, seed);
  bundle.add("a", {BundleType::kFloat32, {2, 5}}, values);
  bundle.add("b", {BundleType::kInt64, {}}, values.substr(0, 8));
  const std::string_view words[] = {"one", "three"};
  bundle.add_strings("words", {2}, words);
  bundle.add_slice("part", {BundleType::kUint8, {4}}, {{0}, {1}}, values.substr(0, 1));
  bundle.add_slice("part", {BundleType::kUint8, {4}}, {{1}, {3}}, values.substr(0, 3));
  bundle.finish();
}

// Reads everything; the error's code, or kOk.
Code read_all(FileSystem& files, const std::string& prefix) {
  try {
    const BundleReader bundle(files, prefix);
    for (const auto& [name, entry] : bundle.entries()) bundle.verify(name);
    return Code::kOk;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("ckpt"), std::string::npos) << error.what();
    return error.code();
  }
}

struct BundleDamageTest : testing::Test {
  BundleDamageTest() {
    files.make_directories("dir");
    write_sample(files, "dir/ckpt-1", 'x');
  }

  // Calls `change` on the content of each file in turn, for each place in it.
  void expect_found(const std::function<std::string(const std::string&, size_t)>& change) {
    for (const std::string& path : files.file_paths()) {
      const std::string good = files.content(path);
      ASSERT_FALSE(good.empty());
      for (size_t place = 0; place < good.size(); ++place) {
        files.set_content(path, change(good, place));
        const Code code = read_all(files, "dir/ckpt-1");
        EXPECT_TRUE(code == Code::kDataLoss || code == Code::kUnimplemented)
            << path << ", place " << place << ": " << code_name(code);
      }
      files.set_content(path, good);
    }
    EXPECT_EQ(read_all(files, "dir/ckpt-1"), Code::kOk);
  }

  SimulatedFileSystem files;
};

TEST_F(BundleDamageTest, EveryFlippedBit) {
  for (int bit = 0; bit < 8; ++bit) {
    expect_found([&](std::string bytes, size_t place) {
      bytes[place] = static_cast<char>(bytes[place] ^ (1 << bit));
      return bytes;
    });
  }
}

TEST_F(BundleDamageTest, EveryTruncation) {
  expect_found([](const std::string& bytes, size_t place) { return bytes.substr(0, place); });
}

TEST_F(BundleDamageTest, EveryMissingFile) {
  for (const std::string& path : files.file_paths()) {
    const std::string good = files.content(path);
    files.remove(path);
    EXPECT_EQ(read_all(files, "dir/ckpt-1"), Code::kNotFound);
    files.set_content(path, good);
  }
}

TEST_F(BundleDamageTest, FilesOfAnotherCheckpoint) {
  write_sample(files, "dir/ckpt-2", 'y');
  for (const std::string suffix : {".index", ".data-00000-of-00001"}) {
    const std::string good = files.content("/dir/ckpt-1" + suffix);
    files.set_content("/dir/ckpt-1" + suffix, files.content("/dir/ckpt-2" + suffix));
    EXPECT_EQ(read_all(files, "dir/ckpt-1"), Code::kDataLoss) << suffix;
    files.set_content("/dir/ckpt-1" + suffix, good);
  }
}

}  // namespace
}  // namespace cohort::internal
