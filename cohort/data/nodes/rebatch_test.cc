// The rules are those of tf.data's rebatch (RebatchV2), which the distribution of batches is built
// on; tests/interop compares with it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/data/test_util.h"

namespace cohort::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Sizes = std::vector<int64_t>;

constexpr const char* kEmpty = "[]";

Dataset batches(int64_t rows, int64_t batch_size) { return Dataset::range(rows).batch(batch_size); }

TEST(Rebatch, CutsAndJoins) {
  EXPECT_THAT(texts(batches(10, 4).rebatch(3)),
              ElementsAre("[0, 1, 2]", "[3, 4, 5]", "[6, 7, 8]", "[9]"));
  EXPECT_THAT(texts(batches(6, 2).rebatch(4)), ElementsAre("[0, 1, 2, 3]", "[4, 5]"));
  EXPECT_THAT(texts(batches(6, 2).rebatch(4, {.drop_remainder = true})),
              ElementsAre("[0, 1, 2, 3]"));
}

TEST(Rebatch, TakesSizesInTurn) {
  EXPECT_THAT(texts(batches(10, 5).rebatch(Sizes{3, 2})),
              ElementsAre("[0, 1, 2]", "[3, 4]", "[5, 6, 7]", "[8, 9]"));
  EXPECT_THAT(texts(batches(7, 7).rebatch(Sizes{3, 2})),
              ElementsAre("[0, 1, 2]", "[3, 4]", "[5, 6]"));
}

TEST(Rebatch, SizeZeroReadsNothing) {
  EXPECT_THAT(texts(batches(4, 2).rebatch(Sizes{2, 0})),
              ElementsAre("[0, 1]", kEmpty, "[2, 3]", kEmpty));
  // Where the first size is 0, one more follows the last row.
  EXPECT_THAT(texts(batches(4, 2).rebatch(Sizes{0, 2})),
              ElementsAre(kEmpty, "[0, 1]", kEmpty, "[2, 3]", kEmpty));
  // A short last batch ends it.
  EXPECT_THAT(texts(batches(3, 2).rebatch(Sizes{0, 2})),
              ElementsAre(kEmpty, "[0, 1]", kEmpty, "[2]"));
  EXPECT_THAT(texts(batches(0, 2).rebatch(Sizes{0, 2})), ElementsAre(kEmpty));
}

TEST(Rebatch, EmptyBatchesHaveTheFormOfOthers) {
  const Dataset pairs =
      Dataset::range(2).batch(1).map([](const Tensor& x) { return tuple(x, StringTensor({"a"})); });
  const Dataset sized = pairs.rebatch(Sizes{0, 2});
  EXPECT_THAT(texts(sized), ElementsAre("([], [])", "([0, 1], [\"a\", \"a\"])", "([], [])"));
  EXPECT_EQ(internal::str(StructureSpec::of(sized.iterator().get_next())),
            "(TensorSpec(shape=(0,), dtype=int64), TensorSpec(shape=(0,), dtype=string))");
}

TEST(Rebatch, KnowsTheRowsOnlyWhereTheyAreSure) {
  const auto rows = [](const Dataset& dataset) {
    return dataset.element_spec().leaf().shape()->front();
  };
  const Dataset fixed = Dataset::range(12).batch(4, {.drop_remainder = true});
  EXPECT_EQ(rows(fixed.rebatch(2)), 2);
  EXPECT_EQ(rows(fixed.rebatch(Sizes{2, 2})), 2);
  EXPECT_EQ(rows(fixed.rebatch(3)), kUnknownDim);
  EXPECT_EQ(rows(fixed.rebatch(3, {.drop_remainder = true})), 3);
  EXPECT_EQ(rows(fixed.rebatch(Sizes{1, 3}, {.drop_remainder = true})), kUnknownDim);
  EXPECT_EQ(rows(batches(12, 4).rebatch(2)), kUnknownDim);
}

// What an empty batch looks like may have to be read: an error of that is one of its turn.
TEST(Rebatch, GoesOnWhereTheFormOfAnEmptyBatchCannotBeRead) {
  const auto fail = [](const Tensor&) -> Tensor { throw NotFoundError("no such thing"); };
  auto iterator = Dataset::range(4).map(fail).batch(2).rebatch(Sizes{0, 2}).iterator();
  int errors = 0, elements = 0;
  for (bool ended = false; !ended && errors < 10;) {
    try {
      ended = !iterator.next();
      if (!ended) ++elements;
    } catch (const NotFoundError&) {
      ++errors;
    }
  }
  EXPECT_EQ(elements, 0);
  EXPECT_LT(errors, 10) << "it never ends";
}

TEST(Rebatch, ChecksItsArguments) {
  EXPECT_THROW(batches(4, 2).rebatch(Sizes{}), InvalidArgumentError);
  EXPECT_THROW(batches(4, 2).rebatch(Sizes{2, -1}), InvalidArgumentError);
  EXPECT_THROW(batches(4, 2).rebatch(Sizes{0, 0}), InvalidArgumentError);
  EXPECT_THAT(thrown<InvalidArgumentError>([] { texts(Dataset::range(3).rebatch(2)); }),
              HasSubstr("scalar"));
}

}  // namespace
}  // namespace cohort::data
