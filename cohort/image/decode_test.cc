#include "cohort/image/decode.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include <string>

#include "cohort/core/error.h"
#include "cohort/image/encode.h"

namespace cohort::io {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Tensor smooth(int64_t height, int64_t width, int64_t channels) {
  const Tensor y = at::arange(height).reshape({height, 1, 1});
  const Tensor x = at::arange(width).reshape({1, width, 1});
  return ((y * 3 + x * 2 + at::arange(channels) * 40).remainder(256)).to(uint8);
}

// The height and width that a JPEG file's frame header says.
std::string with_size(std::string file, int height, int width) {
  const size_t frame = file.find("\xff\xc0");
  EXPECT_NE(frame, std::string::npos);
  for (const auto& [at, value] : {std::pair(frame + 5, height), std::pair(frame + 7, width)}) {
    file[at] = static_cast<char>(value >> 8);
    file[at + 1] = static_cast<char>(value & 255);
  }
  return file;
}

TEST(DecodeJpeg, GivesNearlyWhatWasEncoded) {
  for (const int64_t channels : {1, 3}) {
    const Tensor image = at::full({40, 33, channels}, 77, uint8);
    const std::string file = encode_jpeg(image, {.quality = 100});
    EXPECT_TRUE(is_jpeg(file));
    const Tensor decoded = decode_jpeg(file);
    EXPECT_EQ(decoded.sizes(), image.sizes());
    EXPECT_LE((decoded.to(int32) - image.to(int32)).abs().max().item<int>(), 1);
    EXPECT_EQ(decode_jpeg(file, {.channels = 3}).size(2), 3);
    EXPECT_EQ(decode_jpeg(file, {.ratio = 4}).sizes(), (std::vector<int64_t>{10, 9, channels}));
  }
}

TEST(DecodeJpeg, AWindowIsThatOfThePicture) {
  const std::string file = encode_jpeg(smooth(64, 80, 3), {.chroma_downsampling = false});
  const Tensor whole = decode_jpeg(file);
  const Tensor window = decode_and_crop_jpeg(file, {8, 16, 24, 32});
  EXPECT_TRUE(window.equal(whole.slice(0, 8, 32).slice(1, 16, 48)));
  EXPECT_THAT(
      [&] {
        decode_and_crop_jpeg(file, {8, 16, 60, 32});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("60 x 32 at (8, 16)")));
}

TEST(DecodeJpeg, WhatIsCutShortIsRefusedOrRecovered) {
  const std::string whole = encode_jpeg(smooth(64, 64, 3));
  const std::string half = whole.substr(0, whole.size() / 2);
  EXPECT_THAT([&] { decode_jpeg(half); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr(internal::str(half.size(), " bytes"))));
  const Tensor recovered = decode_jpeg(half, {.try_recover_truncated = true});
  EXPECT_TRUE(recovered[0].equal(decode_jpeg(whole)[0]));
  for (size_t length = 0; length < whole.size(); length += 7) {
    EXPECT_THROW(decode_jpeg(whole.substr(0, length)), InvalidArgumentError) << length;
  }
}

TEST(DecodeJpeg, ASizeThatItsBytesCannotHoldIsRefusedBeforeMemoryIsTaken) {
  const std::string file = with_size(encode_jpeg(smooth(16, 16, 3)), 60000, 60000);
  EXPECT_THAT([&] { decode_jpeg(file); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("said to be 60000 x 60000 pixels")));
  EXPECT_THAT([&] { decode_jpeg(file, {.max_pixels = 1000}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("max_pixels is 1000")));
  EXPECT_THAT([&] { decode_jpeg(file, {.max_pixels = int64_t{1} << 40}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("too large")));
  EXPECT_EQ(extract_jpeg_shape(file)[0].item<int>(), 60000);
}

TEST(DecodeJpeg, AWhitePictureIsNotTooSmallForItsSize) {
  const Tensor white = at::full({2000, 3000, 1}, 255, uint8);
  const std::string file = encode_jpeg(white, {.progressive = true, .optimize_size = true});
  EXPECT_TRUE(decode_jpeg(file).equal(white));
}

TEST(DecodeJpeg, MoreScansThanProgramsWriteAreRefused) {
  const std::string file = encode_jpeg(smooth(16, 16, 1), {.progressive = true});
  const size_t scan = file.rfind("\xff\xda");
  const std::string last = file.substr(scan, file.size() - 2 - scan);
  std::string many = file.substr(0, file.size() - 2);
  for (int i = 0; i < 5000; ++i) many += last;
  many += "\xff\xd9";
  EXPECT_THAT([&] { decode_jpeg(many); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("more than 100 scans")));
}

TEST(DecodePng, GivesWhatWasEncoded) {
  for (const int64_t channels : {1, 2, 3, 4}) {
    const Tensor image = at::randint(0, 256, {13, 17, channels}, int64).to(uint8);
    EXPECT_TRUE(decode_png(encode_png(image)).equal(image));
    const Tensor wide = at::randint(0, 65536, {13, 17, channels}, int64).to(int32);
    EXPECT_TRUE(decode_png(encode_png(wide), {.dtype = int32}).equal(wide));
    EXPECT_TRUE(decode_png(encode_png(image), {.dtype = int32}).equal(image.to(int32) * 257));
    EXPECT_TRUE(decode_image(encode_png(image)).equal(image));
  }
}

TEST(DecodePng, ASizeThatItsBytesCannotHoldIsRefusedBeforeMemoryIsTaken) {
  std::string file = encode_png(smooth(16, 16, 3));
  for (const size_t at : {16, 20}) {
    file[at + 2] = static_cast<char>(60000 >> 8);
    file[at + 3] = static_cast<char>(60000 & 255);
  }
  // Its checksum no longer fits, which libpng would say first.
  EXPECT_THROW(decode_png(file), InvalidArgumentError);
  EXPECT_THAT([&] { decode_png(encode_png(smooth(16, 16, 3)), {.max_pixels = 255}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("16 x 16 pixels; max_pixels is 255")));
  const Tensor black = at::zeros({3000, 3000, 1}, uint8);
  EXPECT_TRUE(decode_png(encode_png(black, {.compression = 9})).equal(black));
}

TEST(DecodePng, WhatIsCutShortOrChangedIsRefused) {
  const std::string whole = encode_png(smooth(20, 20, 3));
  for (size_t length = 0; length < whole.size(); length += 5) {
    EXPECT_THROW(decode_png(whole.substr(0, length)), InvalidArgumentError) << length;
  }
  std::string changed = whole;
  changed[whole.size() / 2] ^= 1;
  EXPECT_THROW(decode_png(changed), InvalidArgumentError);
}

TEST(DecodeImage, TellsKindsByTheirFirstBytes) {
  const Tensor image = smooth(9, 9, 3);
  EXPECT_EQ(decode_image(encode_jpeg(image)).sizes(), image.sizes());
  EXPECT_LE(decode_image(encode_png(image), {.dtype = float32}).max().item<float>(), 1);
  EXPECT_THROW(decode_image("GIF89a"), UnimplementedError);
  EXPECT_THROW(decode_image("text"), InvalidArgumentError);
  EXPECT_THROW(decode_image(""), InvalidArgumentError);
}

TEST(EncodeImage, SaysWhatCannotBeEncoded) {
  EXPECT_THAT([] { encode_jpeg(smooth(4, 4, 2)); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("1 channel (format grayscale) or 3")));
  EXPECT_THAT([] { encode_jpeg(smooth(4, 4, 3), {.quality = 101}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("quality is 101")));
  EXPECT_THAT(
      [] {
        encode_png(at::full({2, 2, 1}, 70000, int32));
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("0 to 65535")));
}

}  // namespace
}  // namespace cohort::io
