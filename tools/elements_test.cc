#include "tools/elements.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>
#include <vector>

namespace cohort::tools {
namespace {

using internal::BundleType;

template <class T>
std::string text(BundleType type, T value) {
  char bytes[sizeof(T) + 1];
  std::memcpy(bytes + 1, &value, sizeof(T));  // at an odd address
  return element_text(type, bytes + 1, 0);
}

TEST(Elements, AreWrittenAsPythonWould) {
  EXPECT_EQ(text(BundleType::kFloat32, 0.1f), "0.1");
  EXPECT_EQ(text(BundleType::kFloat32, 2.f), "2.");
  EXPECT_EQ(text(BundleType::kFloat32, -0.f), "-0.");
  EXPECT_EQ(text(BundleType::kFloat64, 1e-300), "1e-300");
  EXPECT_EQ(text(BundleType::kFloat64, std::nan("")), "nan");
  EXPECT_EQ(text(BundleType::kFloat32, -std::numeric_limits<float>::infinity()), "-inf");
  EXPECT_EQ(text(BundleType::kInt8, int8_t{-128}), "-128");
  EXPECT_EQ(text(BundleType::kUint64, UINT64_MAX), "18446744073709551615");
  EXPECT_EQ(text(BundleType::kBool, uint8_t{2}), "True");
  EXPECT_EQ(text(BundleType::kBool, uint8_t{0}), "False");
  EXPECT_EQ(text(BundleType::kComplex64, std::complex<float>(1, -2.5)), "(1.-2.5j)");
  EXPECT_EQ(text(BundleType::kComplex128, std::complex<double>(0, 1)), "(0.+1.j)");
}

TEST(Elements, SixteenBitNumbers) {
  EXPECT_EQ(text(BundleType::kFloat16, uint16_t{0x3c00}), "1.");
  EXPECT_EQ(text(BundleType::kFloat16, uint16_t{0xc500}), "-5.");
  EXPECT_EQ(to_float(Float16{0x0001}), std::ldexp(1.f, -24));
  EXPECT_EQ(to_float(Float16{0x03ff}), std::ldexp(1023.f, -24));
  EXPECT_EQ(to_float(Float16{0x0400}), std::ldexp(1.f, -14));
  EXPECT_EQ(to_float(Float16{0x7bff}), 65504.f);
  EXPECT_EQ(to_float(Float16{0xfc00}), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(to_float(Float16{0x7e00})));
  EXPECT_TRUE(std::signbit(to_float(Float16{0x8000})));
  EXPECT_EQ(text(BundleType::kBfloat16, uint16_t{0x3f80}), "1.");
  EXPECT_EQ(text(BundleType::kBfloat16, uint16_t{0xc040}), "-3.");
}

std::string array(std::vector<int64_t> shape, uint64_t max_elements = 100) {
  std::ostringstream out;
  print_array(
      {.shape = std::move(shape), .max_elements = max_elements},
      [](uint64_t i) { return std::to_string(i); }, out);
  return out.str();
}

TEST(Elements, ArraysAreNestedBrackets) {
  EXPECT_EQ(array({}), "0");
  EXPECT_EQ(array({3}), "[0, 1, 2]");
  EXPECT_EQ(array({2, 2}), "[[0, 1],\n [2, 3]]");
  EXPECT_EQ(array({2, 1, 2}), "[[[0, 1]],\n [[2, 3]]]");
  EXPECT_EQ(array({0}), "[]");
  EXPECT_EQ(array({INT64_MAX, 0}), "[]") << "not one pair of brackets a row";
}

TEST(Elements, LongArraysAreCut) {
  EXPECT_EQ(array({5}, 3), "[0, 1, 2, ...]");
  EXPECT_EQ(array({3, 2}, 3), "[[0, 1],\n [2, ...],\n ...]");
  EXPECT_EQ(array({3}, 3), "[0, 1, 2]");
  EXPECT_EQ(array({3}, 0), "...");
  EXPECT_EQ(array({INT64_MAX}, 2), "[0, 1, ...]");
}

TEST(Elements, LongRowsAreBroken) {
  std::istringstream lines(array({100}));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) EXPECT_LE(line.size(), 100u);
  EXPECT_GT(count, 2);
}

}  // namespace
}  // namespace cohort::tools
