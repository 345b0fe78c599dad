#include "cohort/core/files/compression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/files/deflate.h"
#include "cohort/core/files/inflate.h"

namespace cohort::internal {
namespace {

std::string compressed(Compression compression, std::string_view bytes) {
  std::string out;
  Deflater deflater(compression);
  deflater.deflate(bytes, out);
  deflater.finish(out);
  return out;
}

// Some of it repeats and some of it does not.
std::string sample(size_t size) {
  std::string bytes;
  uint32_t state = 1;
  while (bytes.size() < size) {
    state = state * 1664525 + 1013904223;
    if (state >> 30 == 0) bytes += "the same words again and again";
    bytes += static_cast<char>(state >> 24);
  }
  bytes.resize(size);
  return bytes;
}

struct Inflated {
  std::string bytes;
  size_t read = 0;
  bool ended = false;
  const char* problem = nullptr;
};

Inflated inflate(Compression compression, std::string_view in, size_t in_step, size_t out_step) {
  Inflater inflater(compression);
  Inflated result;
  std::vector<char> out(out_step);
  while (!inflater.ended()) {
    const auto step = inflater.inflate(in.substr(0, in_step), out);
    result.bytes.append(out.data(), step.written);
    result.read += step.read;
    result.problem = step.problem;
    in.remove_prefix(step.read);
    if (step.problem != nullptr || (step.read == 0 && step.written == 0)) break;
  }
  result.ended = inflater.ended();
  return result;
}

class Deflate : public testing::TestWithParam<Compression> {};
INSTANTIATE_TEST_SUITE_P(Both, Deflate, testing::Values(Compression::kGzip, Compression::kZlib),
                         [](const auto& info) {
                           return std::string(compression_name(info.param));
                         });

TEST_P(Deflate, ComesBackHoweverItIsCut) {
  for (const size_t size : {0, 1, 1000, 300'000}) {
    const std::string bytes = sample(size);
    const std::string packed = compressed(GetParam(), bytes);
    for (const size_t step : {1, 7, 4096, 1 << 20}) {
      if (step == 1 && size > 1000) continue;
      const Inflated result = inflate(GetParam(), packed, step, 1 << 20);
      EXPECT_EQ(result.problem, nullptr);
      EXPECT_TRUE(result.ended);
      EXPECT_EQ(result.bytes, bytes);
      EXPECT_EQ(result.read, packed.size());
      EXPECT_EQ(inflate(GetParam(), packed, 1 << 20, step).bytes, bytes);
    }
  }
}

TEST_P(Deflate, WhatWasFlushedCanBeRead) {
  Deflater deflater(GetParam());
  std::string out;
  deflater.deflate("one ", out);
  deflater.flush(out);
  EXPECT_EQ(inflate(GetParam(), out, 100, 100).bytes, "one ");
  deflater.deflate("two", out);
  deflater.finish(out);
  EXPECT_EQ(inflate(GetParam(), out, 100, 100).bytes, "one two");
}

TEST_P(Deflate, StopsAtTheEndOfTheStream) {
  const std::string bytes = sample(500), packed = compressed(GetParam(), bytes);
  const Inflated result = inflate(GetParam(), packed + "and more", 1 << 20, 1 << 20);
  EXPECT_TRUE(result.ended);
  EXPECT_EQ(result.bytes, bytes);
  EXPECT_EQ(result.read, packed.size());
}

TEST_P(Deflate, EveryFlippedBitIsAProblemOrHarmless) {
  const std::string bytes = sample(300);
  std::string packed = compressed(GetParam(), bytes);
  for (size_t i = 0; i < packed.size(); ++i) {
    packed[i] ^= 1;
    const Inflated result = inflate(GetParam(), packed, 1 << 20, 1 << 20);
    // Some bits of the headers (time, operating system) say nothing about the data.
    if (result.ended && result.problem == nullptr) {
      EXPECT_EQ(result.bytes, bytes) << i;
    }
    packed[i] ^= 1;
  }
  EXPECT_FALSE(inflate(GetParam(), packed.substr(0, packed.size() - 1), 1 << 20, 1 << 20).ended);
}

TEST(Inflate, DamageInTheMiddleOfACode) {
  const unsigned char bytes[] = {0x78, 0x9c, 0x63, 0x80, 0x65, 0x01, 0x00, 0x00, 0x10, 0xde,
                                 0x03, 0xde, 0x03, 0xde, 0x45, 0x01, 0x00, 0x00, 0x10};
  const std::string_view packed(reinterpret_cast<const char*>(bytes), sizeof bytes);
  for (size_t size = 0; size <= packed.size(); ++size) {
    for (const size_t step : {1, 5, 100}) {
      const Inflated result = inflate(Compression::kZlib, packed.substr(0, size), step, 1 << 16);
      EXPECT_LE(result.read, size);
      EXPECT_FALSE(result.ended && result.problem == nullptr);
    }
  }
}

TEST(Compression, HasTensorFlowsNames) {
  EXPECT_EQ(compression_of(""), Compression::kNone);
  EXPECT_EQ(compression_of("GZIP"), Compression::kGzip);
  EXPECT_EQ(compression_of("ZLIB"), Compression::kZlib);
  EXPECT_THROW(compression_of("gzip"), InvalidArgumentError);
}

}  // namespace
}  // namespace cohort::internal
