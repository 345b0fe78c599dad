#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cohort/core/structure/spec.h"

namespace cohort {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr int64_t kAnySize = kUnknownDim;

// ({'image': [None, 3] float32}, [None] string).
StructureSpec batch_spec() {
  return StructureSpec::make_tuple(
      {StructureSpec::make_dict({{"image", TensorSpec({{kAnySize, 3}}, float32)}}),
       TensorSpec::strings({{kAnySize}})});
}

Structure batch(int64_t rows, int64_t columns) {
  return tuple(dict({{"image", at::zeros({rows, columns})}}),
               StringTensor(std::vector<std::string>(static_cast<size_t>(rows))));
}

TEST(StructureSpecTest, KnowsItsKind) {
  EXPECT_TRUE(StructureSpec().is_tuple());
  EXPECT_TRUE(StructureSpec(TensorSpec({{2}}, float32)).is_leaf());
  EXPECT_TRUE(batch_spec().members()[0].is_dict());
  EXPECT_EQ(batch_spec().members()[0].items()[0].first, "image");
  EXPECT_THAT([&] { (void)(batch_spec().leaf()); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("got ({'image': TensorSpec(")));
  EXPECT_THAT([&] { (void)(batch_spec().items()); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("expected a dict")));
  EXPECT_THAT([&] { (void)(batch_spec().members()[1].members()); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("expected a tuple")));
}

TEST(StructureSpecTest, RefusesAKeyTwice) {
  const StructureSpec leaf = TensorSpec({{2}}, float32);
  EXPECT_THAT(
      [&] {
        (void)(StructureSpec::make_dict({{"a", leaf}, {"a", leaf}}));
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("'a'")));
}

TEST(StructureSpecTest, DescribesAStructureExactly) {
  const StructureSpec spec = StructureSpec::of(batch(2, 3));
  EXPECT_EQ(spec.flatten()[0], TensorSpec({{2, 3}}, float32));
  EXPECT_EQ(spec.flatten()[1], TensorSpec::strings({{2}}));
  EXPECT_EQ(spec.first_mismatch(batch(2, 3)), std::nullopt);
}

TEST(StructureSpecTest, MapKeepsTheForm) {
  const StructureSpec mapped =
      batch_spec().map([](const TensorSpec& spec) { return spec.with_batch_dim(4); });
  EXPECT_EQ(mapped, StructureSpec::of(batch(4, 3)));
}

TEST(StructureSpecTest, MakesStructures) {
  const Structure made = batch_spec().make_structure([](const TensorSpec& spec) -> Leaf {
    if (spec.is_string()) return StringTensor();
    return at::zeros({0, 3});
  });
  EXPECT_EQ(made.first_difference(batch(1, 3)), std::nullopt);
  EXPECT_EQ(batch_spec().first_mismatch(made), std::nullopt);
}

TEST(StructureSpecTest, FirstMismatchNamesPlaceExpectedAndFound) {
  EXPECT_EQ(batch_spec().first_mismatch(batch(5, 3)), std::nullopt);
  EXPECT_EQ(
      batch_spec().first_mismatch(batch(5, 4)),
      "[0]['image']: expected TensorSpec(shape=(None, 3), dtype=float32), but got float32 [5,4]");
  EXPECT_EQ(batch_spec().first_mismatch(tuple(dict({{"img", at::zeros({5, 3})}}), StringTensor())),
            "[0]: expected a dict with keys 'image', but got a dict with keys 'img'");
  EXPECT_EQ(batch_spec().first_mismatch(Structure(1)),
            "top level: expected a tuple of 2, but got a leaf");
}

TEST(StructureSpecTest, MostSpecificCompatibleGoesLeafByLeaf) {
  const StructureSpec merged =
      StructureSpec::of(batch(2, 3)).most_specific_compatible(StructureSpec::of(batch(4, 3)));
  EXPECT_EQ(merged, batch_spec());
}

TEST(StructureSpecTest, MostSpecificCompatibleNamesThePlaceOfAConflict) {
  const StructureSpec floats = StructureSpec::of(tuple(at::zeros({2})));
  EXPECT_THAT(
      [&] {
        (void)(floats.most_specific_compatible(StructureSpec::of(tuple(at::zeros({2}, int64)))));
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("differ at [0]")));
  EXPECT_THAT(
      [&] { (void)(floats.most_specific_compatible(StructureSpec::of(tuple(tuple())))); },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("form at [0]: a leaf and a tuple of 0")));
}

TEST(StructureSpecTest, EqualityComparesTheWholeTree) {
  EXPECT_EQ(batch_spec(), batch_spec());
  EXPECT_FALSE(batch_spec() == batch_spec().members()[0]);
  EXPECT_FALSE(batch_spec() == StructureSpec::of(batch(2, 3)));
}

TEST(StructureSpecTest, PrintsAsATree) {
  EXPECT_EQ(internal::str(batch_spec()),
            "({'image': TensorSpec(shape=(None, 3), dtype=float32)}, "
            "TensorSpec(shape=(None,), dtype=string))");
  EXPECT_EQ(internal::str(StructureSpec()), "()");
  EXPECT_EQ(internal::str(StructureSpec::make_tuple({TensorSpec({{2}}, int32)})),
            "(TensorSpec(shape=(2,), dtype=int32),)");
}

}  // namespace
}  // namespace cohort
