#include "cohort/data/records/example.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "cohort/core/bytes/varint.h"
#include "cohort/core/error.h"
#include "cohort/data/records/example_builder.h"

namespace cohort::internal {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<int64_t> ints(const FeatureView& feature) {
  std::vector<int64_t> values(feature.count());
  EXPECT_EQ(feature.copy_ints(values.data(), values.size()), values.size());
  return values;
}
std::vector<float> floats(const FeatureView& feature) {
  std::vector<float> values(feature.count());
  EXPECT_EQ(feature.copy_floats(values.data(), values.size()), values.size());
  return values;
}
std::vector<std::string> strings(const FeatureView& feature) {
  std::vector<std::string> values;
  feature.for_each_bytes([&](std::string_view value) { values.emplace_back(value); });
  EXPECT_EQ(feature.count(), values.size());
  return values;
}

std::map<std::string, FeatureView> parse(const std::string& example) {
  std::map<std::string, FeatureView> features;
  for_each_feature(example, [&](std::string_view name, const FeatureView& feature) {
    features.insert_or_assign(std::string(name), feature);
  });
  return features;
}

// A message Feature of one list with one field 1.
std::string list_feature(FeatureKind kind, const std::string& list) {
  WireWriter feature;
  feature.bytes(static_cast<uint32_t>(kind), list);
  return feature.str();
}

TEST(Example, WhatIsBuiltIsParsed) {
  io::ExampleBuilder builder;
  builder.add_ints("ints", {0, -1, 127, 128, int64_t{1} << 62})
      .add_floats("floats", {0.5f, -2})
      .add_bytes("bytes", {"", "two", std::string_view("\0x", 2)})
      .add_ints("none", {})
      .add_floats("", {1});
  const std::string bytes = builder.serialize();
  auto features = parse(bytes);
  EXPECT_EQ(features.size(), 5u);
  EXPECT_THAT(ints(features["ints"]), ElementsAre(0, -1, 127, 128, int64_t{1} << 62));
  EXPECT_THAT(floats(features["floats"]), ElementsAre(0.5f, -2));
  EXPECT_THAT(strings(features["bytes"]), ElementsAre("", "two", std::string("\0x", 2)));
  EXPECT_EQ(features["none"].kind(), FeatureKind::kInts);
  EXPECT_THAT(ints(features["none"]), IsEmpty());
  EXPECT_THAT(floats(features[""]), ElementsAre(1));
  EXPECT_NE(builder.add_ints("none", {1}).serialize(), bytes);
  EXPECT_EQ(builder.add_ints("none", {}).serialize(), bytes);  // it was replaced
}

TEST(Example, NumbersMayBePackedOrNotOrBoth) {
  WireWriter list;
  std::string packed;
  for (const uint64_t value : {300, 4}) append_varint(packed, value);
  list.varint(1, 1).varint(1, 2).bytes(1, packed).varint(1, 5).varint(7, 9);
  EXPECT_THAT(ints(FeatureView(list_feature(FeatureKind::kInts, list.str()))),
              ElementsAre(1, 2, 300, 4, 5));
  WireWriter float_list;
  float_list.fixed32(1, 0x3f800000).bytes(1, std::string("\0\0\0\x40", 4));
  EXPECT_THAT(floats(FeatureView(list_feature(FeatureKind::kFloats, float_list.str()))),
              ElementsAre(1, 2));
}

TEST(Example, OfAOneofTheLastCountsAndEqualOnesAreJoined) {
  WireWriter one, two, text;
  one.varint(1, 1);
  two.varint(1, 2);
  text.bytes(1, "a");
  WireWriter feature;
  feature.bytes(3, one.str()).bytes(1, text.str()).bytes(3, one.str()).bytes(3, two.str());
  EXPECT_THAT(ints(FeatureView(feature.str())), ElementsAre(1, 2));
  EXPECT_EQ(FeatureView("").kind(), FeatureKind::kNone);
  EXPECT_EQ(FeatureView("").count(), 0u);
}

TEST(Example, CopiesNoMoreThanThereIsRoomFor) {
  const std::string bytes =
      io::ExampleBuilder().add_ints("i", {1, 2, 3}).add_floats("f", {1, 2, 3}).serialize();
  auto features = parse(bytes);
  std::vector<int64_t> two(2);
  EXPECT_EQ(features["i"].copy_ints(two.data(), 2), 3u);
  EXPECT_THAT(two, ElementsAre(1, 2));
  float one = 0;
  EXPECT_EQ(features["f"].copy_floats(&one, 1), 3u);
  EXPECT_EQ(one, 1);
}

using Steps = std::map<std::string, std::vector<FeatureView>>;

Steps parse_lists(const std::string& example) {
  Steps lists;
  for_each_feature_list(example, [&](std::string_view name, std::string_view list) {
    std::vector<FeatureView>& steps = lists[std::string(name)];
    steps.clear();
    for_each_step(list, [&](const FeatureView& step) { steps.push_back(step); });
  });
  return lists;
}

TEST(SequenceExample, WhatIsBuiltIsParsed) {
  io::SequenceExampleBuilder builder;
  builder.context().add_ints("id", {7});
  builder.add_step_ints("a", {1, 2}).add_step_ints("a", {}).add_step_floats("b", {0.5f});
  builder.add_step_bytes("c", {"x"}).add_list("none").add_list("c");
  const std::string bytes = builder.serialize();
  auto context = parse(bytes);
  EXPECT_THAT(ints(context["id"]), ElementsAre(7));
  Steps lists = parse_lists(bytes);
  ASSERT_EQ(lists.size(), 4u);
  ASSERT_EQ(lists["a"].size(), 2u);
  EXPECT_THAT(ints(lists["a"][0]), ElementsAre(1, 2));
  EXPECT_THAT(ints(lists["a"][1]), IsEmpty());
  EXPECT_THAT(floats(lists["b"][0]), ElementsAre(0.5f));
  EXPECT_THAT(strings(lists["c"][0]), ElementsAre("x"));
  EXPECT_THAT(lists["none"], IsEmpty());
  EXPECT_EQ(builder.serialize(), bytes);
  EXPECT_TRUE(parse_lists(io::SequenceExampleBuilder().serialize()).empty());
}

TEST(SequenceExample, DamageIsAnError) {
  io::SequenceExampleBuilder builder;
  builder.add_step_ints("a", {300, 2}).add_step_ints("a", {1});
  const std::string bytes = builder.serialize();
  for (size_t size = 1; size < bytes.size(); ++size) {
    EXPECT_THROW(parse_lists(bytes.substr(0, size)), DataLossError) << size;
  }
}

TEST(Example, DamageIsAnError) {
  const std::string bytes = io::ExampleBuilder().add_ints("abc", {300, 2}).serialize();
  for (size_t size = 1; size < bytes.size(); ++size) {
    EXPECT_THROW(parse(bytes.substr(0, size)), DataLossError) << size;
  }
  EXPECT_THROW(parse("This is text."), DataLossError);
  EXPECT_THROW(floats(FeatureView(list_feature(FeatureKind::kFloats,
                                               "\x0a\x03"
                                               "abc"))),
               DataLossError);
  EXPECT_THROW(ints(FeatureView(list_feature(FeatureKind::kInts, "\x0a\x02\x01\xff"))),
               DataLossError);
}

}  // namespace
}  // namespace cohort::internal
