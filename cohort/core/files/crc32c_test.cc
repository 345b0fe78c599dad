#include "cohort/core/files/crc32c.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace cohort::internal {
namespace {

// RFC 3720, appendix B.4.
TEST(Crc32c, GivesThePublishedValues) {
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(""), 0u);
}

TEST(Crc32c, ContinuesFromWhatCameBefore) {
  const std::string text = "a checksum of two parts";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(crc32c(text.substr(cut), crc32c(text.substr(0, cut))), crc32c(text)) << cut;
  }
}

TEST(Crc32c, OfManyIsThatOfEach) {
  std::string text(5000, '\0');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * i >> 3);
  for (size_t step : {0, 1, 7, 61}) {
    std::vector<std::string_view> buffers;
    for (size_t i = 0; i < 23; ++i) {
      buffers.push_back(std::string_view(text).substr(i, (3 + i * step) % 600));
    }
    for (size_t count = 0; count <= buffers.size(); ++count) {
      std::vector<uint32_t> crcs(count + 1, 7);
      crc32c_each(std::span(buffers).first(count), crcs.data());
      for (size_t i = 0; i < count; ++i) EXPECT_EQ(crcs[i], crc32c(buffers[i])) << i;
      EXPECT_EQ(crcs[count], 7u);
    }
  }
}

TEST(Crc32c, MaskingIsUndone) {
  for (uint32_t crc : {0u, 1u, 0xe3069283u, 0xffffffffu}) {
    EXPECT_NE(mask_crc(crc), crc);
    EXPECT_EQ(unmask_crc(mask_crc(crc)), crc);
  }
}

}  // namespace
}  // namespace cohort::internal
