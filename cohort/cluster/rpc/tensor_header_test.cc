#include "cohort/cluster/rpc/tensor_header.h"

#include <gtest/gtest.h>

#include "cohort/core/testing_errors.h"

namespace cohort::internal::rpc {
namespace {

constexpr char kWhat[] = "argument 0";

TEST(TensorHeader, ComesBackAsItWas) {
  for (const TensorHeader& header : {TensorHeader{.type = ElementType::kFloat32, .shape = {2, 3}},
                                     TensorHeader{.type = ElementType::kInt64, .shape = {}},
                                     TensorHeader{.type = ElementType::kBool, .shape = {0, 5}}}) {
    EXPECT_EQ(decode_tensor_header(encode_tensor_header(header, kWhat), kWhat), header);
  }
}

TEST(TensorHeader, CountsBytes) {
  EXPECT_EQ(tensor_bytes({.type = ElementType::kFloat32, .shape = {2, 3}}, kWhat), 24U);
  EXPECT_EQ(tensor_bytes({.type = ElementType::kComplex128, .shape = {}}, kWhat), 16U);
  EXPECT_EQ(tensor_bytes({.type = ElementType::kBool, .shape = {7, 0}}, kWhat), 0U);
  check_tensor_bytes({.type = ElementType::kInt16, .shape = {3}}, 6, kWhat);
  expect_error<InvalidArgumentError>(
      [] { check_tensor_bytes({.type = ElementType::kInt16, .shape = {3}}, 7, kWhat); },
      "argument 0: its shape asks for 6 bytes, and 7 came");
}

TEST(TensorHeader, RefusesWhatCannotBe) {
  const auto refuse = [](const TensorHeader& header, const std::string& text) {
    expect_error<InvalidArgumentError>([&] { encode_tensor_header(header, kWhat); }, text);
  };
  refuse({.type = static_cast<ElementType>(7), .shape = {}}, "type 7");
  refuse({.type = ElementType::kBool, .shape = {-1}}, "size -1");
  refuse({.type = ElementType::kBool, .shape = std::vector<int64_t>(9, 1)}, "at most 8");
  refuse({.type = ElementType::kBool, .shape = {int64_t{1} << 62, int64_t{1} << 62}},
         "asks for more");
  refuse({.type = ElementType::kBool, .shape = {int64_t{1} << 62, 0}}, "asks for more");
  expect_error<DataLossError>([] { decode_tensor_header("", kWhat); }, "no type");
  expect_error<DataLossError>([] { decode_tensor_header("\x0a", kWhat); }, kWhat);
}

}  // namespace
}  // namespace cohort::internal::rpc
