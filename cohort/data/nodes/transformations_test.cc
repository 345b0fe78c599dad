// batch, unbatch, repeat, take, skip, shard, enumerate, zip, concatenate: values and cardinalities.
// Every transformation is tried over the three kinds of input there are: one that can be read at
// any position, one that gives blocks in order, one that gives single elements in order.
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <utility>
#include <vector>

#include "cohort/data/files/text_line_dataset.h"
#include "cohort/data/test_util.h"

namespace cohort::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Transformations : public testing::TestWithParam<int> {
 protected:
  Dataset range(int64_t stop) const {
    const Dataset dataset = Dataset::range(stop);
    if (GetParam() == 1) return in_blocks(dataset);
    if (GetParam() == 2) return sequential(dataset);
    return dataset;
  }
};
INSTANTIATE_TEST_SUITE_P(Inputs, Transformations, testing::Values(0, 1, 2));

TEST_P(Transformations, Batch) {
  EXPECT_THAT(texts(range(5).batch(2)), ElementsAre("[0, 1]", "[2, 3]", "[4]"));
  EXPECT_THAT(texts(range(5).batch(2, {.drop_remainder = true})), ElementsAre("[0, 1]", "[2, 3]"));
  EXPECT_THAT(texts(range(4).batch(2)), ElementsAre("[0, 1]", "[2, 3]"));
  EXPECT_THAT(texts(range(2).batch(5)), ElementsAre("[0, 1]"));
  EXPECT_THAT(texts(range(2).batch(5, {.drop_remainder = true})), IsEmpty());
  EXPECT_THAT(texts(range(0).batch(5)), IsEmpty());
  EXPECT_THAT(texts(range(6).batch(2).batch(2)), ElementsAre("[[0, 1], [2, 3]]", "[[4, 5]]"));
  EXPECT_THAT(texts(range(7).batch(2).skip(2)), ElementsAre("[4, 5]", "[6]"));
}

TEST_P(Transformations, Unbatch) {
  EXPECT_THAT(ints(range(5).batch(2).unbatch()), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(texts(range(7).batch(3).unbatch().batch(2)),
              ElementsAre("[0, 1]", "[2, 3]", "[4, 5]", "[6]"));
  EXPECT_THAT(ints(range(7).batch(3).unbatch().skip(4)), ElementsAre(4, 5, 6));
}

TEST_P(Transformations, Repeat) {
  EXPECT_THAT(ints(range(3).repeat(2)), ElementsAre(0, 1, 2, 0, 1, 2));
  EXPECT_THAT(ints(range(2).repeat().take(5)), ElementsAre(0, 1, 0, 1, 0));
  EXPECT_THAT(ints(range(2).repeat().skip(3).take(2)), ElementsAre(1, 0));
  EXPECT_THAT(ints(range(3).repeat(0)), IsEmpty());
  EXPECT_THAT(texts(range(3).repeat(2).batch(2)), ElementsAre("[0, 1]", "[2, 0]", "[1, 2]"));
  EXPECT_THAT(ints(range(2).repeat(2).repeat(2)), ElementsAre(0, 1, 0, 1, 0, 1, 0, 1));
}

TEST_P(Transformations, RepeatOfNothingEnds) {
  EXPECT_THAT(ints(range(0).repeat()), IsEmpty());
  EXPECT_THAT(ints(range(0).repeat().repeat()), IsEmpty());
  EXPECT_THAT(ints(range(5).filter([](const Structure&) { return false; }).repeat()), IsEmpty());
  EXPECT_THAT(ints(range(5).repeat(0).repeat()), IsEmpty());
}

TEST_P(Transformations, Take) {
  EXPECT_THAT(ints(range(5).take(3)), ElementsAre(0, 1, 2));
  EXPECT_THAT(ints(range(2).take(3)), ElementsAre(0, 1));
  EXPECT_THAT(ints(range(2).take(-1)), ElementsAre(0, 1));
  EXPECT_THAT(ints(range(2).take(0)), IsEmpty());
  EXPECT_THAT(texts(range(9).take(5).batch(3)), ElementsAre("[0, 1, 2]", "[3, 4]"));
  EXPECT_THAT(ints(range(9).take(5).skip(3)), ElementsAre(3, 4));
}

TEST_P(Transformations, Skip) {
  EXPECT_THAT(ints(range(5).skip(3)), ElementsAre(3, 4));
  EXPECT_THAT(ints(range(5).skip(7)), IsEmpty());
  EXPECT_THAT(ints(range(5).skip(0)), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(ints(range(5).skip(-1)), IsEmpty());
  EXPECT_THAT(ints(range(5).repeat().skip(-1)), IsEmpty());
  EXPECT_THAT(ints(range(4).skip(1).repeat(2)), ElementsAre(1, 2, 3, 1, 2, 3));
}

TEST_P(Transformations, Shard) {
  EXPECT_THAT(ints(range(7).shard(3, 0)), ElementsAre(0, 3, 6));
  EXPECT_THAT(ints(range(7).shard(3, 1)), ElementsAre(1, 4));
  EXPECT_THAT(ints(range(7).shard(3, 2)), ElementsAre(2, 5));
  EXPECT_THAT(ints(range(2).shard(3, 2)), IsEmpty());
  EXPECT_THAT(ints(range(4).shard(1, 0)), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(ints(range(12).shard(2, 1).shard(2, 1)), ElementsAre(3, 7, 11));
  EXPECT_THAT(ints(range(12).shard(2, 1).skip(4)), ElementsAre(9, 11));
  EXPECT_THAT(texts(range(9).shard(2, 0).batch(2)), ElementsAre("[0, 2]", "[4, 6]", "[8]"));
}

TEST_P(Transformations, Enumerate) {
  EXPECT_THAT(texts(range(3).map([](int64_t x) { return 10 * x; }).enumerate(5)),
              ElementsAre("(5, 0)", "(6, 10)", "(7, 20)"));
  EXPECT_THAT(texts(range(3).enumerate().batch(2)), ElementsAre("([0, 1], [0, 1])", "([2], [2])"));
  EXPECT_THAT(texts(range(3).enumerate().skip(2)), ElementsAre("(2, 2)"));
  EXPECT_THAT(texts(range(2).enumerate().repeat(2)),
              ElementsAre("(0, 0)", "(1, 1)", "(0, 0)", "(1, 1)"));
}

TEST_P(Transformations, Zip) {
  EXPECT_THAT(texts(Dataset::zip({range(3), range(5).skip(2)})),
              ElementsAre("(0, 2)", "(1, 3)", "(2, 4)"));
  EXPECT_THAT(texts(Dataset::zip({{"a", range(3)}, {"b", Dataset::range(2)}})),
              ElementsAre("{'a': 0, 'b': 0}", "{'a': 1, 'b': 1}"));
  EXPECT_THAT(texts(Dataset::zip({range(5), Dataset::range(4)}).batch(3)),
              ElementsAre("([0, 1, 2], [0, 1, 2])", "([3], [3])"));
  EXPECT_THAT(texts(Dataset::zip({range(5), range(4)}).skip(3)), ElementsAre("(3, 3)"));
  EXPECT_THAT(texts(Dataset::zip({range(2), range(2).repeat()}).repeat(2)),
              ElementsAre("(0, 0)", "(1, 1)", "(0, 0)", "(1, 1)"));
}

TEST_P(Transformations, Concatenate) {
  EXPECT_THAT(ints(range(2).concatenate(range(3))), ElementsAre(0, 1, 0, 1, 2));
  EXPECT_THAT(texts(range(2).concatenate(range(3)).batch(3)), ElementsAre("[0, 1, 0]", "[1, 2]"));
  EXPECT_THAT(ints(range(2).concatenate(range(3)).skip(3)), ElementsAre(1, 2));
  EXPECT_THAT(ints(range(2).concatenate(range(1)).repeat(2)), ElementsAre(0, 1, 0, 0, 1, 0));
  EXPECT_THAT(ints(range(2).concatenate(range(3)).shard(2, 1)), ElementsAre(1, 1));
  const Dataset both = range(20).concatenate(range(5).map([](int64_t x) { return 100 + x; }));
  EXPECT_EQ(ints(both.shuffle(25, {.seed = 1}).batch(4)), ints(both.shuffle(25, {.seed = 1})));
}

TEST(Cardinality, IsExact) {
  const Dataset ten = Dataset::range(10), infinite = ten.repeat(), unknown = sequential(ten);
  EXPECT_EQ(ten.batch(3).cardinality(), 4);
  EXPECT_EQ(ten.batch(3, {.drop_remainder = true}).cardinality(), 3);
  EXPECT_EQ(ten.batch(5).cardinality(), 2);
  EXPECT_EQ(ten.repeat(3).cardinality(), 30);
  EXPECT_EQ(ten.repeat(0).cardinality(), 0);
  EXPECT_EQ(ten.take(3).cardinality(), 3);
  EXPECT_EQ(ten.take(30).cardinality(), 10);
  EXPECT_EQ(ten.take(-1).cardinality(), 10);
  EXPECT_EQ(ten.skip(3).cardinality(), 7);
  EXPECT_EQ(ten.skip(30).cardinality(), 0);
  EXPECT_EQ(ten.skip(-1).cardinality(), 0);
  EXPECT_EQ(ten.shard(3, 0).cardinality(), 4);
  EXPECT_EQ(ten.shard(3, 1).cardinality(), 3);
  EXPECT_EQ(ten.enumerate().prefetch(1).shuffle(3).cardinality(), 10);
  EXPECT_EQ(ten.map([](int64_t x) { return x; }).cardinality(), 10);
  EXPECT_EQ(ten.filter([](int64_t) { return true; }).cardinality(), kUnknownCardinality);
  EXPECT_EQ(Dataset::zip({ten, Dataset::range(4)}).cardinality(), 4);
  EXPECT_EQ(ten.concatenate(Dataset::range(4)).cardinality(), 14);
  EXPECT_EQ(ten.batch(5, {.drop_remainder = true}).unbatch().cardinality(), 10);
  EXPECT_EQ(ten.batch(5).unbatch().cardinality(), kUnknownCardinality);

  EXPECT_EQ(infinite.cardinality(), kInfiniteCardinality);
  EXPECT_EQ(infinite.batch(3).cardinality(), kInfiniteCardinality);
  EXPECT_EQ(infinite.take(3).cardinality(), 3);
  EXPECT_EQ(infinite.skip(3).cardinality(), kInfiniteCardinality);
  EXPECT_EQ(infinite.shard(3, 0).cardinality(), kInfiniteCardinality);
  EXPECT_EQ(infinite.repeat(0).cardinality(), 0);
  EXPECT_EQ(Dataset::range(0).repeat().cardinality(), 0);
  EXPECT_EQ(Dataset::zip({infinite, ten}).cardinality(), 10);
  EXPECT_EQ(Dataset::zip({infinite, infinite}).cardinality(), kInfiniteCardinality);
  EXPECT_EQ(unknown.concatenate(infinite).cardinality(), kInfiniteCardinality);

  EXPECT_EQ(unknown.repeat().cardinality(), kInfiniteCardinality);
  EXPECT_EQ(unknown.repeat(2).cardinality(), kUnknownCardinality);
  EXPECT_EQ(unknown.batch(2).take(1).skip(1).shard(2, 0).cardinality(), kUnknownCardinality);
  EXPECT_EQ(Dataset::zip({unknown, ten}).cardinality(), kUnknownCardinality);
  EXPECT_EQ(ten.concatenate(unknown).cardinality(), kUnknownCardinality);
  // Whatever datasets an endless input makes, reading them never ends.
  const auto each_twice = [](int64_t x) { return Dataset::range(x, x + 2); };
  EXPECT_EQ(infinite.interleave(each_twice).cardinality(), kInfiniteCardinality);
  EXPECT_EQ(infinite.interleave(each_twice, {.num_parallel_calls = 2}).batch(2).cardinality(),
            kInfiniteCardinality);
  EXPECT_EQ(infinite.flat_map(each_twice).cardinality(), kInfiniteCardinality);
  EXPECT_EQ(infinite.flat_map(each_twice).take(3).cardinality(), 3);
  EXPECT_EQ(ten.interleave(each_twice).cardinality(), kUnknownCardinality);
  EXPECT_EQ(unknown.flat_map(each_twice).cardinality(), kUnknownCardinality);
  EXPECT_EQ(Dataset::range(0).flat_map(each_twice).cardinality(), 0);
  EXPECT_EQ(infinite.filter([](int64_t) { return true; }).cardinality(), kUnknownCardinality);
  EXPECT_EQ(infinite.padded_batch(2).cardinality(), kInfiniteCardinality);
  EXPECT_EQ(infinite.ragged_batch(2).cardinality(), kInfiniteCardinality);
  EXPECT_EQ(infinite.batch(2).rebatch(3).cardinality(), kInfiniteCardinality);
  EXPECT_EQ(infinite.batch(2, {.drop_remainder = true}).unbatch().cardinality(),
            kInfiniteCardinality);
  EXPECT_EQ(
      TextLineDataset(Dataset::from_tensors(StringTensor::scalar("a")).repeat()).cardinality(),
      kInfiniteCardinality);
}

TEST(ElementSpec, FollowsTheTransformations) {
  const Dataset pairs = Dataset::from_tensor_slices(tuple(at::zeros({6, 2}), at::zeros({6})));
  EXPECT_EQ(pairs.batch(4).element_spec(),
            StructureSpec::make_tuple(
                {TensorSpec({{kUnknownDim, 2}}, float32), TensorSpec({{kUnknownDim}}, float32)}));
  EXPECT_EQ(pairs.batch(4, {.drop_remainder = true}).element_spec(),
            StructureSpec::make_tuple({TensorSpec({{4, 2}}, float32), TensorSpec({{4}}, float32)}));
  EXPECT_EQ(pairs.batch(4).unbatch().element_spec(), pairs.element_spec());
  EXPECT_EQ(pairs.shuffle(2).repeat().take(1).skip(1).shard(2, 1).prefetch(1).element_spec(),
            pairs.element_spec());
  EXPECT_EQ(
      pairs.enumerate().element_spec(),
      StructureSpec::make_tuple({TensorSpec(std::vector<int64_t>{}, int64), pairs.element_spec()}));
  EXPECT_EQ(Dataset::zip({{"a", pairs}, {"b", pairs}}).element_spec(),
            StructureSpec::make_dict({{"a", pairs.element_spec()}, {"b", pairs.element_spec()}}));
  const Dataset three = Dataset::from_tensors(at::zeros({3, 2}));
  const Dataset four = Dataset::from_tensors(at::zeros({4, 2}));
  EXPECT_EQ(three.concatenate(four).element_spec(),
            StructureSpec(TensorSpec({{kUnknownDim, 2}}, float32)));
}

// Where both specs are known without reading, when it is built; else while reading.
TEST(Concatenate, RefusesElementsOfAnotherForm) {
  const Dataset ints = Dataset::range(2), floats = Dataset::from_tensors(at::zeros({}));
  const Dataset strings = Dataset::from_tensors(StringTensor::scalar("a"));
  const Dataset pairs = Dataset::zip({ints, ints});
  for (const auto& [first, second] : std::vector<std::pair<Dataset, Dataset>>{
           {ints, strings}, {floats, ints}, {pairs, ints}, {ints, pairs}}) {
    EXPECT_THAT(thrown<InvalidArgumentError>([&, a = first, b = second] { a.concatenate(b); }),
                AllOf(HasSubstr("concatenate: "), HasSubstr(internal::str(first.element_spec())),
                      HasSubstr(internal::str(second.element_spec()))));
  }
  int64_t calls = 0;
  const Dataset mapped = ints.map([&](const Tensor& x) {
    ++calls;
    return x;
  });
  EXPECT_EQ(mapped.concatenate(strings).cardinality(), 3);
  EXPECT_EQ(calls, 0);
}

// Not a chain of a loop's many asks its inputs more than once.
TEST(Concatenate, ManyAreJoined) {
  Dataset doubled = Dataset::range(1), chain = Dataset::range(1);
  for (int i = 0; i < 60; ++i) doubled = doubled.concatenate(doubled);
  EXPECT_EQ(doubled.element_spec(), chain.element_spec());
  for (int64_t i = 1; i < 2'200; ++i)
    chain = chain.concatenate(sequential(Dataset::range(i, i + 1)));
  auto iterator = chain.iterator();
  for (int i = 0; i < 200; ++i) iterator.get_next();
  auto restored = chain.iterator();
  restored.restore(IteratorState::parse(iterator.state().serialize()));
  EXPECT_EQ(restored.get_next().tensor().item<int64_t>(), 200);
}

// Positions are int64: an endless dataset has elements behind the last of them, but nobody gets
// there one by one.
TEST(EndlessData, PositionsBeyondInt64AreRefused) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const Dataset rows = Dataset::from_tensor_slices(at::arange(3)).repeat();
  for (const Dataset& dataset :
       {rows.skip(kMost - 1).take(6).shuffle(6).batch(6), rows.skip(kMost - 1).take(6).batch(6),
        rows.skip(kMost), rows.skip(kMost).batch(2), rows.skip(kMost - 3).skip(kMost),
        rows.batch(2).skip(int64_t{1} << 62), rows.batch(kMost).skip(3),
        rows.skip(kMost).ignore_errors({.log_warning = false})}) {
    auto iterator = dataset.iterator();
    EXPECT_THAT(thrown<OutOfRangeError>([&] { iterator.next(); }),
                HasSubstr("of an endless dataset"))
        << dataset.explain();
  }
  EXPECT_THAT(ints(rows.skip(kMost - 4).take(3)), ElementsAre(0, 1, 2));
  EXPECT_THAT(texts(rows.skip(kMost - 5).batch(2).take(1)), ElementsAre("[2, 0]"));
  const Dataset large = Dataset::range(kMost);
  EXPECT_EQ(large.concatenate(large).cardinality(), kInfiniteCardinality);
  EXPECT_EQ(Dataset::range(5).concatenate(Dataset::range(kMost - 7)).cardinality(), kMost - 2);
}

TEST(Arguments, AreChecked) {
  const Dataset ten = Dataset::range(10);
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { ten.batch(0); }), HasSubstr("batch_size is 0"));
  EXPECT_THROW(ten.shuffle(0), InvalidArgumentError);
  EXPECT_THROW(ten.repeat(-2), InvalidArgumentError);
  EXPECT_THROW(ten.take(-2), InvalidArgumentError);
  EXPECT_THROW(ten.skip(-2), InvalidArgumentError);
  EXPECT_THROW(ten.prefetch(-2), InvalidArgumentError);
  EXPECT_EQ(ten.prefetch(0).node(), ten.node());
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { ten.shard(3, 3); }),
              HasSubstr("index is 3; with 3 shards it must be in [0, 3)"));
  EXPECT_THROW(ten.shard(3, -1), InvalidArgumentError);
  EXPECT_THROW(ten.shard(0, 0), InvalidArgumentError);
  EXPECT_THROW(Dataset::zip(std::vector<Dataset>{}), InvalidArgumentError);
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                Dataset::zip({{"a", ten}, {"a", ten}});
              }),
              HasSubstr("'a' is given twice"));
}

TEST_P(Transformations, BatchNamesElementsThatDoNotFit) {
  const Dataset ragged =
      range(8).map([](int64_t x) -> Structure { return tuple(at::zeros({x < 5 ? 2 : 3}), x); });
  auto iterator = ragged.batch(3).iterator();
  iterator.get_next();
  const std::string text = thrown<InvalidArgumentError>([&] { iterator.next(); });
  EXPECT_THAT(text, HasSubstr("at [0] element 3 is float32 [2], but element 5 is float32 [3]"));
  EXPECT_EQ(iterator.get_next()[1].tensor().size(0), 2);  // the batch after it is as ever
  EXPECT_FALSE(iterator.next().has_value());
}

TEST_P(Transformations, BatchNamesElementsOfAnotherForm) {
  const Dataset mixed = range(4).map(
      [](int64_t x) -> Structure { return x < 3 ? Structure(x) : Structure(tuple(x, x)); });
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { texts(mixed.batch(4)); }),
              HasSubstr("elements 0 and 3"));
}

TEST(Unbatch, RefusesWhatHasNoRows) {
  EXPECT_THAT(thrown<InvalidArgumentError>([] { ints(Dataset::range(2).unbatch()); }),
              HasSubstr("scalar"));
  const Dataset uneven = Dataset::from_tensors(tuple(at::zeros({2}), at::zeros({3}))).unbatch();
  const std::string text = thrown<InvalidArgumentError>([&] { texts(uneven); });
  EXPECT_THAT(text, HasSubstr("[1] has 3 rows"));
  EXPECT_THAT(text, HasSubstr("[0] has 2"));
}

TEST(Unbatch, PassesEmptyBatches) {
  const Dataset batches =
      Dataset::range(4).map([](int64_t x) -> Structure { return at::arange(x % 2, at::kLong); });
  EXPECT_THAT(ints(batches.unbatch()), ElementsAre(0, 0));
}

}  // namespace
}  // namespace cohort::data
