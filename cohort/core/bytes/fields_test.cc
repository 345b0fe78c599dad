#include "cohort/core/bytes/fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"

namespace cohort::internal {
namespace {

using std::chrono::nanoseconds;
using testing::HasSubstr;

constexpr char kWhat[] = "the message";

enum class Color : uint8_t { kRed, kGreen, kBlue };

struct Point {
  int x = 0;
  int64_t y = 0;
  bool operator==(const Point&) const = default;
};
void fields(auto& f, Point& point) {
  f(1, point.x);
  f(2, point.y);
}

struct Everything {
  bool flag = false;
  int8_t small = 0;
  int32_t number = 0;
  int64_t wide = 0;
  uint32_t whole = 0;
  uint64_t large = 0;
  Color color = Color::kRed;
  float half = 0;
  double real = 0;
  nanoseconds time{};
  std::string text = {};
  std::optional<int> maybe = {};
  std::optional<std::string> word = {};
  Point point = {};
  std::optional<Point> other = {};
  std::vector<std::string> words = {};
  std::vector<int64_t> numbers = {};
  std::vector<double> reals = {};
  std::vector<Point> points = {};
  std::set<std::string> names = {};
  std::map<std::string, double> figures = {};
  std::vector<std::pair<std::string, int>> pairs = {};
  uint32_t fixed = 0;
  bool operator==(const Everything&) const = default;
};
void fields(auto& f, Everything& all) {
  f(1, all.flag);
  f(2, all.small);
  f(3, all.number);
  f(4, all.wide);
  f(5, all.whole);
  f(6, all.large);
  f(7, all.color, Color::kBlue);
  f(8, all.half);
  f(9, all.real);
  f(10, all.time);
  f(11, all.text);
  f(12, all.maybe);
  f(13, all.word);
  f(14, all.point);
  f(15, all.other);
  f(16, all.words);
  f(17, all.numbers);
  f(18, all.reals);
  f(19, all.points);
  f(20, all.names);
  f(21, all.figures);
  f(22, all.pairs);
  f(23, all.fixed, kFixed);
}

template <class V>
struct One {
  V value{};
};
template <class V>
void fields(auto& f, One<V>& one) {
  f(1, one.value);
}
template <class V>
V sole(std::string_view bytes) {
  return decode_fields<One<V>>(bytes, kWhat).value;
}

struct Kept {
  int always = -1;
  std::string text = "text";
};
void fields(auto& f, Kept& kept) {
  f(1, kept.always, kAlways);
  f(2, kept.text);
}

Everything some() {
  return {.flag = true,
          .small = -128,
          .number = std::numeric_limits<int32_t>::min(),
          .wide = -5,
          .whole = ~uint32_t{0},
          .large = ~uint64_t{0},
          .color = Color::kBlue,
          .half = 0.5,
          .real = -0.,
          .time = nanoseconds(-7),
          .text = std::string("\0\xff", 2),
          .maybe = 0,
          .word = "",
          .point = {1, -2},
          .other = Point{},
          .words = {"", "two"},
          .numbers = {0, -1, 300},
          .reals = {0, 1.5},
          .points = {{}, {3, 4}},
          .names = {"a", "b"},
          .figures = {{"loss", 0.25}, {"", 0}},
          .pairs = {{"one", 1}, {"one", 1}},
          .fixed = 7};
}

TEST(Fields, AMessageArrivesAsItWas) {
  const Everything sent = some();
  EXPECT_TRUE(decode_fields<Everything>(encode_fields(sent), kWhat) == sent);
  EXPECT_TRUE(std::signbit(decode_fields<Everything>(encode_fields(sent), kWhat).real));
}

TEST(Fields, WhatIsZeroTakesNoBytes) {
  EXPECT_EQ(encode_fields(Everything()), "");
  EXPECT_EQ(encode_fields(Kept{.always = 0, .text = ""}), std::string("\x08\0", 2));
}

TEST(Fields, WhatIsMissingIsZeroOrStaysWhereItIsAlwaysWritten) {
  const auto kept = decode_fields<Kept>("", kWhat);
  EXPECT_EQ(kept.always, -1);
  EXPECT_EQ(kept.text, "");
}

TEST(Fields, TheBytesAreThoseOfProtocolBuffers) {
  EXPECT_EQ(encode_fields(One<int>{-1}), "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
  EXPECT_EQ(encode_fields(One<float>{1}), std::string("\x0d\0\0\x80\x3f", 5));
  EXPECT_EQ(encode_fields(One<Point>{{1, 2}}), "\x0a\x04\x08\x01\x10\x02");
  EXPECT_EQ(encode_fields(One<std::vector<int>>{{1, 300}}), "\x0a\x03\x01\xac\x02");
  EXPECT_EQ(encode_fields(One<std::vector<std::string>>{{"", "a"}}),
            std::string("\x0a\0\x0a\x01", 4) + "a");
  EXPECT_EQ(encode_fields(One<std::map<std::string, int>>{{{"a", 0}}}),
            std::string("\x0a\x05\x0a\x01\x61\x10\0", 7));
  const std::vector<std::string_view> words = {"a"};
  EXPECT_EQ(encode_fields(One<std::span<const std::string_view>>{words}), "\x0a\x01\x61");
}

TEST(Fields, ViewsLieInTheBytes) {
  const std::string bytes = encode_fields(One<std::string>{"view"});
  EXPECT_EQ(sole<std::string_view>(bytes).data(), bytes.data() + 2);
}

TEST(Fields, UnknownFieldsArePassedOverAndTheLastOfTwoCounts) {
  EXPECT_EQ(sole<int>("\x08\x01\x12\x03xyz\x08\x02"), 2);
  EXPECT_EQ(sole<Point>("\x0a\x02\x08\x01\x0a\x02\x10\x02"), (Point{0, 2}));
}

TEST(Fields, RepeatedNumbersComePackedOrOneByOne) {
  EXPECT_EQ(sole<std::vector<int>>("\x08\x07\x0a\x02\x01\x02"), (std::vector<int>{7, 1, 2}));
}

TEST(Fields, NumbersThatDoNotFitAreErrors) {
  const auto refused = [](auto number, const char* bytes) {
    expect_error<DataLossError>([&] { sole<decltype(number)>(bytes); },
                                "the message: field 1 is out of range");
  };
  refused(int32_t{}, "\x08\x80\x80\x80\x80\x08");           // 2^31
  refused(uint32_t{}, "\x08\x80\x80\x80\x80\x10");          // 2^32
  refused(int8_t{}, "\x08\x80\x01");                        // 128
  refused(std::vector<uint8_t>{}, "\x0a\x03\x01\x80\x02");  // 256
  expect_error<DataLossError>([] { decode_fields<Everything>("\x38\x03", kWhat); },
                              "field 7 is out of range");
  expect_error<DataLossError>([] { decode_fields<Everything>("\x38\x80\x02", kWhat); },
                              "field 7 is out of range");
}

TEST(Fields, AFieldOfAnotherTypeIsAnError) {
  expect_error<DataLossError>([] { sole<int>("\x0a\x01x"); }, "the message: field 1 is of wire");
  expect_error<DataLossError>([] { sole<std::string>("\x08\x01"); }, "field 1 is of wire type 0");
  expect_error<DataLossError>([] { sole<double>("\x08\x01"); }, "field 1 is of wire type 0");
  expect_error<DataLossError>([] { sole<Point>("\x08\x01"); }, "field 1 is of wire type 0");
}

TEST(Fields, EveryTruncationIsAnErrorOrAShorterMessage) {
  const std::string bytes = encode_fields(some());
  int refused = 0;
  for (size_t size = 0; size < bytes.size(); ++size) {
    try {
      const auto shorter = decode_fields<Everything>(bytes.substr(0, size), kWhat);
      EXPECT_TRUE(decode_fields<Everything>(encode_fields(shorter), kWhat) == shorter) << size;
    } catch (const DataLossError& error) {
      EXPECT_THAT(error.what(), HasSubstr(kWhat));
      ++refused;
    }
  }
  EXPECT_GT(refused, 50);
}

TEST(Fields, PackedNumbersAreCutShort) {
  expect_error<DataLossError>([] { sole<std::vector<int>>("\x0a\x01\x80"); },
                              "the message: a number that does not end");
  expect_error<DataLossError>([] { sole<std::vector<double>>("\x0a\x03xyz"); },
                              "needs 8 bytes, of which 3 are there");
}

TEST(Fields, MorePartsThanTheBytesAccountForAreRefused) {
  std::string bytes;
  for (int i = 0; i < 1'000'000; ++i) bytes += std::string_view("\x0a\0", 2);
  expect_error<DataLossError>([&] { sole<std::vector<std::string>>(bytes); }, "more parts");
  expect_error<DataLossError>([&] { sole<std::vector<Everything>>(bytes); }, "more parts");
}

struct AtMostTwo {
  template <RepeatedField C>
  void operator()(const C& container) const {
    if (container.size() >= 2) throw InvalidArgumentError("more than 2");
  }
};
struct Short {
  void operator()(std::string_view text) const {
    if (text.size() > 3) throw InvalidArgumentError("too long");
  }
};
struct Checked {
  int number = 0;
  std::string text = {};
  std::vector<std::string> words = {};
  std::map<std::string, int> map = {};
};
void fields(auto& f, Checked& all) {
  f(1, all.number, [](int number) {
    if (number < 0) throw InvalidArgumentError("negative");
  });
  f(2, all.text, Short());
  f(3, all.words, AtMostTwo(), Short());
  f(4, all.map, AtMostTwo(), Short());
}

TEST(Fields, ChecksSeeWhatIsRead) {
  const auto refused = [](const Checked& sent, const char* text) {
    const std::string bytes = encode_fields(sent);
    expect_error<InvalidArgumentError>([&] { decode_fields<Checked>(bytes, kWhat); }, text);
  };
  const Checked good{1, "abc", {"abc", ""}, {{"a", 1}, {"b", 2}}};
  EXPECT_EQ(decode_fields<Checked>(encode_fields(good), kWhat).map, good.map);
  refused({.number = -1}, "negative");
  refused({.text = "abcd"}, "too long");
  refused({.words = {"abcd"}}, "too long");
  refused({.words = {"a", "b", "c"}}, "more than 2");
  refused({.map = {{"abcd", 1}}}, "too long");
  refused({.map = {{"a", 1}, {"b", 2}, {"c", 3}}}, "more than 2");
}

}  // namespace
}  // namespace cohort::internal
