#include "cohort/train/summary/event_encoding.h"

#include <gmock/gmock.h>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"
#include "cohort/train/summary/testing_events.h"

namespace cohort::internal {
namespace {

using testing::ElementsAre;

TEST(EventEncoding, ASummaryReadsBack) {
  const int64_t shape[] = {2, 1};
  const float values[] = {1.5F, -2.0F};
  const std::string tensor = encode_event_numbers(
      EventDtype::kFloat, shape, {reinterpret_cast<const char*>(values), sizeof values});
  const ReadEvent event = read_event(encode_summary({.wall_time = 12.25,
                                                     .step = 7,
                                                     .tag = "a/b",
                                                     .plugin = "scalars",
                                                     .description = "what it is",
                                                     .tensor = tensor}));
  EXPECT_EQ(event.wall_time, 12.25);
  EXPECT_EQ(event.step, 7);
  EXPECT_EQ(event.tag, "a/b");
  EXPECT_EQ(event.plugin, "scalars");
  EXPECT_EQ(event.description, "what it is");
  EXPECT_EQ(event.dtype, 1U);
  EXPECT_THAT(event.shape, ElementsAre(2, 1));
  EXPECT_THAT(event.numbers<float>(), ElementsAre(1.5F, -2.0F));
}

TEST(EventEncoding, StringsAndNegativeStepsReadBack) {
  const int64_t shape[] = {2};
  const std::string values[] = {"", std::string("\0x", 2)};
  const ReadEvent event = read_event(encode_summary(
      {.step = -1, .tag = "t", .plugin = "text", .tensor = encode_event_strings(shape, values)}));
  EXPECT_EQ(event.step, -1);
  EXPECT_EQ(event.dtype, 7U);
  EXPECT_THAT(event.strings, ElementsAre("", std::string("\0x", 2)));
}

TEST(EventEncoding, NamesAreUtf8) {
  for (const char* valid : {"", "a", "\u00e9", "\u20ac", "\U0001f600", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_EQ(read_event(encode_summary({.tag = valid})).tag, valid);
  }
  for (const char* invalid : {"\x80", "\xc0\x80", "\xc3", "a\xe2\x82", "\xed\xa0\x80",
                              "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xff"}) {
    expect_error<InvalidArgumentError>([&] { encode_summary({.tag = invalid}); }, "is not UTF-8");
  }
  expect_error<InvalidArgumentError>([] { encode_summary({.tag = "ab\xff"}); }, "at byte 2");
  expect_error<InvalidArgumentError>([] { encode_summary({.description = "\xff"}); },
                                     "the description of a summary");
}

}  // namespace
}  // namespace cohort::internal
