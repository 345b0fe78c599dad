#include "cohort/core/bytes/fingerprint.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <set>
#include <string>
#include <utility>

namespace cohort::internal {
namespace {

std::string letters(size_t length) {
  std::string text;
  for (size_t i = 0; i < length; ++i) text += static_cast<char>('a' + i * 7 % 26);
  return text;
}

// What tf.strings.to_hash_bucket_fast gives, of each way of mixing and at its limits.
TEST(Fingerprint64, IsTensorFlows) {
  const std::pair<size_t, uint64_t> expected[] = {
      {0, 11160318154034397263u},   {1, 12917804110809363939u}, {5, 10853072327754618121u},
      {12, 4419094223295249610u},   {20, 9615919020104280472u}, {40, 1546394228708775856u},
      {64, 16149515108185634462u},  {65, 2768067016444695309u}, {130, 4387637145567618109u},
      {200, 15075557378531049012u},
  };
  for (const auto& [length, fingerprint] : expected) {
    EXPECT_EQ(fingerprint64(letters(length)), fingerprint) << length;
  }
}

TEST(Fingerprint64, CountsEveryByte) {
  for (const size_t length : {1u, 3u, 4u, 8u, 16u, 17u, 33u, 64u, 65u, 128u, 129u}) {
    std::set<uint64_t> seen = {fingerprint64(std::string(length, '\0'))};
    for (size_t i = 0; i < length; ++i) {
      std::string text(length, '\0');
      text[i] = '\xff';
      EXPECT_TRUE(seen.insert(fingerprint64(text)).second) << length << " " << i;
    }
  }
}

// What keras.layers.HashedCrossing gives without buckets, which begins with this number.
TEST(JoinedFingerprint64, IsTensorFlows) {
  const auto cross = [](std::initializer_list<int64_t> features) {
    uint64_t joined = 0xdecafcaffe;
    for (const int64_t feature : features) {
      joined = joined_fingerprint64(joined, static_cast<uint64_t>(feature));
    }
    return joined;
  };
  EXPECT_EQ(cross({1, 101}), 12422592210635831870u);
  EXPECT_EQ(cross({-5, 7}), 16305607742098869598u);
  EXPECT_EQ(cross({3, 4, 5}), 1225595849839516216u);
  EXPECT_EQ(cross({int64_t{1} << 62, std::numeric_limits<int64_t>::min()}), 2078991099959033490u);
}

}  // namespace
}  // namespace cohort::internal
