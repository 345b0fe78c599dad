#include "cohort/core/structure/structure.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/structure/unpack.h"

namespace cohort {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Tensor number(int64_t value) { return at::full({}, value, at::TensorOptions().dtype(int64)); }
int64_t value_of(const Leaf& leaf) { return leaf.tensor().item<int64_t>(); }

// {'image': (1, 2), 'label': 3, 'none': ()}.
Structure nested() { return dict({{"image", tuple(1, 2)}, {"label", 3}, {"none", tuple()}}); }

std::vector<int64_t> values_of(const Structure& structure) {
  std::vector<int64_t> values;
  structure.for_each([&](const Leaf& leaf) { values.push_back(value_of(leaf)); });
  return values;
}

TEST(StructureTest, AnOptionalOnePrints) {
  EXPECT_EQ(internal::str(std::optional<Structure>(tuple(1, 2))), "(1, 2)");
  EXPECT_EQ(internal::str(std::optional<Structure>()), "nullopt");
}

TEST(StructureTest, LeavesComputeAsTensors) {
  const Structure element = dict({{"x", 6}, {"y", 4}});
  EXPECT_EQ(internal::str(Structure(element["x"] / element["y"])), "1.5");
  EXPECT_EQ(internal::str(Structure(1 - element["x"] * 2)), "-11");
  EXPECT_THROW(element + 1, InvalidArgumentError);
}

TEST(StructureTest, UnpacksEveryElementOfARange) {
  std::vector<int64_t> sums;
  const std::vector<Structure> elements{tuple(1, 2, 3), tuple(4, 5, 6)};
  struct Range {
    const std::vector<Structure>& elements;
    struct Cursor {
      const std::vector<Structure>* elements;
      size_t index = 0;
      const Structure& operator*() const { return (*elements)[index]; }
      Cursor& operator++() { return ++index, *this; }
      bool operator==(std::default_sentinel_t) const { return index == elements->size(); }
    };
    Cursor begin() const { return {&elements}; }
    std::default_sentinel_t end() const { return {}; }
  };
  for (auto [x, y, z] : unpack<3>(Range{elements})) {
    sums.push_back((x + y * z).item<int64_t>());
  }
  EXPECT_EQ(sums, (std::vector<int64_t>{7, 34}));
}

TEST(LeafTest, IsATensorOrStrings) {
  const Leaf tensor(at::zeros({2, 3}));
  const Leaf strings(StringTensor({"a", "b"}));
  EXPECT_TRUE(tensor.is_tensor());
  EXPECT_TRUE(strings.is_strings());
  EXPECT_THAT(tensor.sizes(), ElementsAre(2, 3));
  EXPECT_THAT(strings.sizes(), ElementsAre(2));
  EXPECT_EQ(tensor.dim(), 2);
  EXPECT_EQ(strings.dim(), 1);
  EXPECT_THAT([&] { (void)(tensor.strings()); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("float32 [2,3]")));
  EXPECT_THAT([&] { (void)(strings.tensor()); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("strings of shape [2]")));
}

TEST(LeafTest, SlicesShareStorage) {
  const Tensor rows = at::arange(6).view({3, 2});
  const Leaf part = Leaf(rows).slice(1, 3);
  EXPECT_TRUE(part.tensor().equal(at::arange(2, 6).view({2, 2})));
  EXPECT_EQ(part.tensor().storage().data(), rows.storage().data());
  EXPECT_EQ(Leaf(StringTensor({"a", "b"})).slice(1, 2).strings(), StringTensor({"b"}));
  EXPECT_THAT([&] { (void)(Leaf(rows).slice(2, 4)); },
              ThrowsMessage<OutOfRangeError>(HasSubstr("[2, 4)")));
  EXPECT_THAT([&] { (void)(Leaf(rows).slice(-1, 1)); },
              ThrowsMessage<OutOfRangeError>(HasSubstr("[-1, 1)")));
  EXPECT_THAT([&] { (void)(Leaf(number(1)).slice(0, 1)); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("scalar")));
}

TEST(StructureTest, ScalarsBecomeTensors) {
  EXPECT_EQ(Structure(true).tensor().scalar_type(), boolean);
  EXPECT_EQ(Structure(1.5).tensor().scalar_type(), float32);
  EXPECT_EQ(Structure(1.5f).tensor().scalar_type(), float32);
  EXPECT_EQ(Structure(7).tensor().scalar_type(), int64);
  EXPECT_EQ(Structure(7).tensor().dim(), 0);
  EXPECT_EQ(value_of(Structure(int64_t{1} << 40).leaf()), int64_t{1} << 40);
  EXPECT_FLOAT_EQ(Structure(1.5).tensor().item<float>(), 1.5f);
}

TEST(StructureTest, AStringLiteralIsNoBool) {
  static_assert(!std::is_constructible_v<Structure, const char*>);
  static_assert(!std::is_convertible_v<const char(&)[4], Structure>);
}

TEST(StructureTest, KnowsItsKind) {
  EXPECT_TRUE(Structure().is_tuple());
  EXPECT_EQ(Structure().size(), 0u);
  EXPECT_TRUE(Structure(number(1)).is_leaf());
  EXPECT_EQ(Structure(number(1)).size(), 1u);
  EXPECT_TRUE(nested().is_dict());
  EXPECT_EQ(nested().size(), 3u);
  EXPECT_EQ(tuple(1, 2).kind(), Structure::Kind::kTuple);
}

TEST(StructureTest, ReadsMembers) {
  const Structure structure = nested();
  EXPECT_EQ(value_of(structure["image"][1].leaf()), 2);
  EXPECT_EQ(value_of(structure[1].leaf()), 3);
  EXPECT_TRUE(structure.contains("label"));
  EXPECT_FALSE(structure.contains("lable"));
  EXPECT_FALSE(tuple(1).contains("label"));
  const Tensor& converted = structure["label"];
  EXPECT_EQ(converted.item<int64_t>(), 3);
}

TEST(StructureTest, RefusesMembersThatDoNotExist) {
  const Structure structure = nested();
  EXPECT_THAT(
      [&] { (void)(structure["lable"]); },
      ThrowsMessage<NotFoundError>(HasSubstr("'lable'; the keys are 'image', 'label', 'none'")));
  EXPECT_THAT([&] { (void)(structure[3]); }, ThrowsMessage<OutOfRangeError>(HasSubstr("member 3")));
  EXPECT_THAT([&] { (void)(tuple(1, 2)[-1]); },
              ThrowsMessage<OutOfRangeError>(HasSubstr("member -1")));
  EXPECT_THAT([&] { (void)(tuple(1)["label"]); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("a tuple")));
  EXPECT_THAT([&] { (void)(Structure(1)[0]); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("a leaf has no members")));
  EXPECT_THAT([&] { (void)(structure.tensor()); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("a dict: {'image': (1, 2)")));
  EXPECT_THAT([&] { (void)(structure.members()); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("expected a tuple")));
  EXPECT_THAT([&] { (void)(tuple(1).items()); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("expected a dict")));
  EXPECT_THAT([&] { (void)(Structure(1).strings()); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("expected a tensor of strings")));
}

TEST(StructureTest, RefusesAKeyTwice) {
  EXPECT_THAT(
      [&] {
        (void)(dict({{"a", 1}, {"b", 2}, {"a", 3}}));
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("'a'")));
}

TEST(StructureTest, FlattensDepthFirstInOrderOfInsertion) {
  EXPECT_THAT(values_of(dict({{"z", tuple(1, tuple(2))}, {"a", 3}})), ElementsAre(1, 2, 3));
  EXPECT_EQ(nested().flatten().size(), 3u);
  EXPECT_EQ(nested().num_leaves(), 3u);
  EXPECT_EQ(Structure(1).num_leaves(), 1u);
  EXPECT_EQ(Structure().num_leaves(), 0u);
}

TEST(StructureTest, PackUndoesFlatten) {
  const Structure packed = nested().pack({Leaf(number(7)), Leaf(number(8)), Leaf(number(9))});
  EXPECT_EQ(packed.first_difference(nested()), std::nullopt);
  EXPECT_THAT(values_of(packed), ElementsAre(7, 8, 9));
  EXPECT_THAT([&] { (void)(nested().pack({Leaf(number(7))})); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("3 leaves")));
}

TEST(StructureTest, MapKeepsTheForm) {
  const auto twice = [](const Leaf& leaf) -> Leaf { return leaf.tensor() * 2; };
  EXPECT_THAT(values_of(nested().map(twice)), ElementsAre(2, 4, 6));
  EXPECT_EQ(nested().map(twice).first_difference(nested()), std::nullopt);
  EXPECT_EQ(value_of(Structure(4).map(twice).leaf()), 8);
  EXPECT_EQ(Structure().map(twice).size(), 0u);
  EXPECT_TRUE(dict({}).map(twice).is_dict());
  EXPECT_THAT(values_of(nested()), ElementsAre(1, 2, 3));  // the original is as it was
}

TEST(StructureTest, ForEachTellsThePath) {
  std::vector<std::string> paths;
  dict({{"image", tuple(1, dict({{"x", 2}}))}})
      .for_each_with_path([&](const std::string& path, const Leaf&) { paths.push_back(path); });
  EXPECT_THAT(paths, ElementsAre("['image'][0]", "['image'][1]['x']"));
  Structure(1).for_each_with_path(
      [](const std::string& path, const Leaf&) { EXPECT_EQ(path, ""); });
}

TEST(StructureTest, CopiesShareTensors) {
  const Structure original = tuple(number(1));
  const Structure copy = original;
  copy[0].tensor().add_(1);
  EXPECT_THAT(values_of(original), ElementsAre(2));
}

TEST(FirstDifferenceTest, LooksAtFormNotAtValues) {
  EXPECT_EQ(nested().first_difference(nested()), std::nullopt);
  EXPECT_EQ(Structure(1).first_difference(StringTensor({"a"})), std::nullopt);
  EXPECT_EQ(Structure().first_difference(Structure()), std::nullopt);
}

TEST(FirstDifferenceTest, NamesThePlaceAndBothSides) {
  EXPECT_EQ(dict({{"image", tuple(tuple(1, 2))}}).first_difference(dict({{"image", tuple(3)}})),
            "['image'][0]: a tuple of 2 here, a leaf there");
  EXPECT_EQ(tuple(1).first_difference(tuple(1, 2)),
            "top level: a tuple of 1 here, a tuple of 2 there");
  EXPECT_EQ(
      tuple(1, dict({{"a", 1}, {"b", 2}})).first_difference(tuple(1, dict({{"b", 2}, {"a", 1}}))),
      "[1]: a dict with keys 'a', 'b' here, a dict with keys 'b', 'a' there");
  EXPECT_EQ(tuple().first_difference(dict({})),
            "top level: a tuple of 0 here, a dict with keys none there");
}

TEST(MapStructuresTest, CombinesLeafByLeaf) {
  const auto sum = [](const std::vector<Leaf>& leaves) -> Leaf {
    Tensor total = leaves[0].tensor();
    for (size_t i = 1; i < leaves.size(); ++i) total = total + leaves[i].tensor();
    return total;
  };
  const Structure total = map_structures({nested(), nested(), nested()}, sum);
  EXPECT_THAT(values_of(total), ElementsAre(3, 6, 9));
  EXPECT_EQ(total.first_difference(nested()), std::nullopt);
  EXPECT_EQ(value_of(map_structures({Structure(5)}, sum).leaf()), 5);
}

TEST(MapStructuresTest, RefusesStructuresOfDifferentForms) {
  const auto first = [](const std::vector<Leaf>& leaves) { return leaves[0]; };
  EXPECT_THAT([&] { (void)(map_structures({}, first)); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("at least one")));
  EXPECT_THAT(
      [&] {
        (void)(map_structures({tuple(1, 2), tuple(1, 2), tuple(1, tuple(2))}, first));
      },
      ThrowsMessage<InvalidArgumentError>(
          HasSubstr("2 (there) differ in form at [1]: a leaf here, a tuple of 1 there")));
}

TEST(UnpackTest, GivesTheTensorsOfATuple) {
  auto [x, y] = tuple(number(1), number(2));
  EXPECT_EQ(x.item<int64_t>(), 1);
  EXPECT_EQ(y.item<int64_t>(), 2);
  EXPECT_EQ(unpack<3>(tuple(1, 2, 3))[2].item<int64_t>(), 3);
}

TEST(UnpackTest, RefusesOtherForms) {
  EXPECT_THAT([&] { (void)(unpack<2>(tuple(1))); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("2 tensors, but got (1,)")));
  EXPECT_THAT([&] { (void)(unpack<1>(Structure(1))); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("1 tensors, but got 1")));
  EXPECT_THAT([&] { (void)(unpack<1>(tuple(tuple()))); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("expected a leaf")));
}

}  // namespace
}  // namespace cohort
