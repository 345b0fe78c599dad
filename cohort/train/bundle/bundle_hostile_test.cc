// Row 38 of the fault matrix: indexes whose checksums hold and whose content is meant to harm. What
// fuzzers found, and what TensorFlow's own fuzzer starts from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "cohort/core/bytes/wire.h"
#include "cohort/core/error.h"
#include "cohort/core/files/crc32c.h"
#include "cohort/core/files/simulated_file_system.h"
#include "cohort/train/bundle/bundle_reader.h"
#include "cohort/train/bundle/ordered_code.h"
#include "cohort/train/bundle/table.h"

namespace cohort::internal {
namespace {

using testing::HasSubstr;
using train::TensorSlice;

const std::string kData = "0123456789abcdef";

struct BundleHostileTest : testing::Test {
  BundleHostileTest() { index[""] = format_bundle_header(1); }

  static BundleEntry bytes_entry(std::vector<int64_t> shape) {
    BundleEntry entry;
    entry.type = BundleType::kUint8;
    entry.size = num_elements(shape, "entry");
    entry.shape = std::move(shape);
    entry.crc = mask_crc(crc32c(std::string_view(kData).substr(0, entry.size)));
    return entry;
  }

  void add(const std::string& name, const BundleEntry& entry) {
    index[name] = format_bundle_entry(entry);
  }

  // A tensor that lists `parts`, each of which is there.
  void add_partitioned(std::vector<int64_t> shape, const std::vector<TensorSlice>& parts) {
    BundleEntry whole;
    whole.type = BundleType::kUint8;
    whole.shape = std::move(shape);
    for (const TensorSlice& slice : parts) {
      const std::string key = slice_key("w", slice);
      add(key, bytes_entry(slice.length));
      whole.slices.push_back({slice, key});
    }
    add("w", whole);
  }

  std::string error() {
    files.set_content("ckpt.index", format_table(index));
    files.set_content("ckpt.data-00000-of-00001", kData);
    try {
      const BundleReader bundle(files, "ckpt");
      for (const auto& [name, entry] : bundle.entries()) bundle.verify(name);
      return "no error";
    } catch (const DataLossError& error) {
      EXPECT_THAT(error.what(), HasSubstr("ckpt."));
      return error.what();
    }
  }

  SimulatedFileSystem files;
  std::map<std::string, std::string> index;
};

TEST_F(BundleHostileTest, WhatIsAsItShouldBe) {
  add("a", bytes_entry({2, 3}));
  add_partitioned({2, 2}, {{{0, 0}, {2, 1}}, {{0, 1}, {2, 1}}});
  EXPECT_EQ(error(), "no error");
}

TEST_F(BundleHostileTest, PartsThatOverlapAndLeaveAsLargeAGap) {
  add_partitioned({2, 2}, {{{0, 0}, {1, 2}}, {{0, 0}, {2, 1}}});
  EXPECT_THAT(error(), HasSubstr("overlap or leave gaps"));
}

TEST_F(BundleHostileTest, OnePartListedOverAndOver) {
  add_partitioned({4}, {{{0}, {2}}, {{0}, {2}}});
  EXPECT_THAT(error(), HasSubstr("lists slices that the file does not have"));
}

// Each slice's key has the name in it: two bytes in the index for 30'000 in memory.
TEST_F(BundleHostileTest, ManySlicesOfALongName) {
  WireWriter whole;
  for (int i = 0; i < 5000; ++i) whole.bytes(7, "");
  index[std::string(30'000, 'w')] = whole.str();
  for (int i = 0; i < 5000; ++i) add("x" + std::to_string(i), bytes_entry({0}));
  EXPECT_THAT(error(), HasSubstr("lists slices that the file does not have"));
}

TEST_F(BundleHostileTest, AKeyOfAMebibyte) {
  add(std::string(size_t{1} << 20, 'w'), bytes_entry({2}));
  const std::string text = error();
  EXPECT_THAT(text, HasSubstr("has 1048576 bytes"));
  EXPECT_LT(text.size(), 1000u) << "it is not quoted";
}

TEST_F(BundleHostileTest, ExtentsOutsideOfTheTensor) {
  BundleEntry whole = bytes_entry({4});
  for (const TensorSlice& slice :
       {TensorSlice{{-2}, {2}}, TensorSlice{{2}, {std::numeric_limits<int64_t>::max()}}}) {
    whole.slices = {{slice, ""}};
    add(slice_key("w", slice), bytes_entry({2}));
    add("w", whole);
    EXPECT_THAT(error(), HasSubstr("outside of the tensor"));
  }
}

TEST_F(BundleHostileTest, SizesThatOverflow) {
  BundleEntry entry = bytes_entry({4});
  entry.offset = std::numeric_limits<uint64_t>::max() - 1;
  add("w", entry);
  EXPECT_THAT(error(), HasSubstr("beyond the end"));
  entry = bytes_entry({0});
  entry.shape = {int64_t{1} << 40, int64_t{1} << 40};
  add("w", entry);
  EXPECT_THAT(error(), HasSubstr("more elements"));
  entry.shape = {-1, -4};
  add("w", entry);
  EXPECT_THAT(error(), HasSubstr("a dimension of -1"));
  EXPECT_EQ(num_elements(std::vector<int64_t>(254, 1), "w"), 1u);
  EXPECT_THROW(num_elements(std::vector<int64_t>(255, 1), "w"), DataLossError);
}

TEST_F(BundleHostileTest, DataFilesWithoutEnd) {
  index[""] = WireWriter().varint(1, uint64_t{1} << 40).str();
  EXPECT_THAT(error(), HasSubstr("1099511627776 data files"));
}

}  // namespace
}  // namespace cohort::internal
