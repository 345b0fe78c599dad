#include "cohort/train/bundle/ordered_code.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace cohort::internal {
namespace {

std::string encoded(int64_t value) {
  std::string out;
  append_ordered_signed(out, value);
  return out;
}

std::string encoded_unsigned(uint64_t value) {
  std::string out;
  append_ordered(out, value);
  return out;
}

TEST(OrderedCode, UnsignedNumbersAreTheirLengthAndTheirBytes) {
  EXPECT_EQ(encoded_unsigned(0), std::string("\0", 1));
  EXPECT_EQ(encoded_unsigned(1), "\1\1");
  EXPECT_EQ(encoded_unsigned(255), "\1\xff");
  EXPECT_EQ(encoded_unsigned(256), std::string("\2\1\0", 3));
}

TEST(OrderedCode, SignedNumbersTakeOneByteForEverySevenBits) {
  EXPECT_EQ(encoded(0), "\x80");
  EXPECT_EQ(encoded(63), "\xbf");
  EXPECT_EQ(encoded(64), "\xc0\x40");
  EXPECT_EQ(encoded(-1), "\x7f");
  EXPECT_EQ(encoded(-64), "\x40");
  EXPECT_EQ(encoded(-65), "\x3f\xbf");
  EXPECT_EQ(encoded(std::numeric_limits<int64_t>::max()).size(), 10u);
}

TEST(OrderedCode, TheOrderOfNumbersIsThatOfTheirBytes) {
  std::vector<int64_t> values = {0};
  for (int shift = 0; shift < 63; ++shift) {
    for (const int64_t near : {-1, 0, 1}) {
      values.push_back((int64_t{1} << shift) + near);
      values.push_back(-(int64_t{1} << shift) + near);
    }
  }
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  for (size_t i = 1; i < values.size(); ++i) {
    EXPECT_LT(encoded(values[i - 1]), encoded(values[i])) << values[i - 1] << " " << values[i];
  }
}

TEST(OrderedCode, TextMayHoldAnyByte) {
  std::string out;
  append_ordered(out, std::string_view("a\0b\xff", 4));
  EXPECT_EQ(out, std::string("a\0\xff"
                             "b\xff\0\0\1",
                             8));
}

// The key that TensorFlow 2.15 writes for rows 0 and 1 of a [3, 2] variable "v".
TEST(OrderedCode, SliceKeysAreTensorFlows) {
  EXPECT_EQ(slice_key("v", {{0, 0}, {2, 2}}), std::string("\0v\0\1\1\2\x80\x82\x80\x82", 10));
  EXPECT_EQ(slice_key("v", {{2, 0}, {1, -1}}), std::string("\0v\0\1\1\2\x82\x81\x80\x7f", 10));
}

}  // namespace
}  // namespace cohort::internal
