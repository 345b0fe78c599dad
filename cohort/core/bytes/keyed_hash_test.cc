#include "cohort/core/bytes/keyed_hash.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <tuple>

namespace cohort::internal {
namespace {

// The key 00 01 .. 0f of the algorithm's own examples.
constexpr HashKey kExample = {0x0706050403020100, 0x0f0e0d0c0b0a0908};

std::string letters(size_t length) {
  std::string text;
  for (size_t i = 0; i < length; ++i) text += static_cast<char>('a' + i * 7 % 26);
  return text;
}

// The example at the end of the paper: the bytes 00 01 .. 0e.
TEST(KeyedHash64, IsSipHash) {
  std::string bytes;
  for (char i = 0; i < 15; ++i) bytes += i;
  EXPECT_EQ(keyed_hash64(bytes, kExample), 0xa129ca6149be45e5u);
}

// What tf.strings.to_hash_bucket_strong gives, with whole words and all numbers of bytes left over.
TEST(KeyedHash64, IsTensorFlows) {
  const std::tuple<size_t, uint64_t, uint64_t> expected[] = {
      {0, 8246050544436514353u, 4928313950774450900u},
      {1, 3144613055062689994u, 7077939996121841354u},
      {5, 14924672591093264002u, 11080832434000305815u},
      {7, 16323835857739325428u, 8190399635145060661u},
      {8, 17773275981750074761u, 402495816166331470u},
      {9, 2351770921575919431u, 7920961337282439112u},
      {12, 12248871577364115110u, 11803679830354934941u},
      {15, 15197628648982760646u, 14966628300296649833u},
      {16, 14328369177625898295u, 10774724063635859733u},
      {31, 2956283089820445078u, 17675598727393397718u},
      {33, 782348102108923912u, 1927055576242084467u},
      {64, 17784214801780065114u, 278418522064457138u},
      {65, 6116726846325506057u, 7310432139819663723u},
      {200, 16482569182185654277u, 3645945665211277455u},
  };
  for (const auto& [length, example, other] : expected) {
    EXPECT_EQ(keyed_hash64(letters(length), kExample), example) << length;
    EXPECT_EQ(keyed_hash64(letters(length), {133, 137}), other) << length;
  }
}

TEST(KeyedHash64, CountsEveryByteOfTextAndKey) {
  for (const size_t length : {1u, 7u, 8u, 9u, 23u}) {
    std::set<uint64_t> seen = {keyed_hash64(std::string(length, '\0'), {})};
    for (size_t i = 0; i < length; ++i) {
      std::string text(length, '\0');
      text[i] = '\xff';
      EXPECT_TRUE(seen.insert(keyed_hash64(text, {})).second) << length << " " << i;
    }
    for (int bit = 0; bit < 64; ++bit) {
      const uint64_t word = uint64_t{1} << bit;
      EXPECT_TRUE(seen.insert(keyed_hash64(std::string(length, '\0'), {word, 0})).second) << bit;
      EXPECT_TRUE(seen.insert(keyed_hash64(std::string(length, '\0'), {0, word})).second) << bit;
    }
  }
}

}  // namespace
}  // namespace cohort::internal
