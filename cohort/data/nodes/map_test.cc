#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <stdexcept>
#include <vector>

#include "cohort/core/structure/row_memory.h"
#include "cohort/data/test_util.h"

namespace cohort::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

int64_t twice(int64_t x) { return 2 * x; }

class Map : public testing::TestWithParam<int> {
 protected:
  Dataset input(const Dataset& dataset) const {
    if (GetParam() == 1) return in_blocks(dataset);
    if (GetParam() == 2) return sequential(dataset);
    return dataset;
  }
  Dataset range(int64_t stop) const { return input(Dataset::range(stop)); }
};
INSTANTIATE_TEST_SUITE_P(Inputs, Map, testing::Values(0, 1, 2));

TEST_P(Map, TakesEveryKindOfCallable) {
  const std::function<int64_t(int64_t)> function = twice;
  struct Functor {
    int64_t operator()(int64_t x) const { return 2 * x; }
  };
  const auto generic = [](const auto& x) { return x.tensor() * 2; };
  for (const Dataset& doubled :
       {range(3).map(twice), range(3).map(&twice), range(3).map(function), range(3).map(Functor{}),
        range(3).map(generic), range(3).map([](const Tensor& x) { return x * 2; }),
        range(3).map([](Tensor x) { return x * 2; }),
        range(3).map([](const Structure& x) { return Structure(x.tensor() * 2); }),
        range(3).map([](int64_t x) { return 2 * x; }),
        range(3).map([k = std::make_unique<int64_t>(2)](int64_t x) { return *k * x; })}) {
    EXPECT_THAT(ints(doubled), ElementsAre(0, 2, 4));
    EXPECT_THAT(texts(doubled.batch(2)), ElementsAre("[0, 2]", "[4]"));
  }
}

TEST_P(Map, AnOutOfRangeErrorOfTheFunctionIsTheElementsAndNotTheEnd) {
  const auto fail_at_1 = [](int64_t x) {
    if (x == 1) throw OutOfRangeError("mine");
    return x;
  };
  for (const Dataset& dataset :
       {range(3).map(fail_at_1), range(3).map(fail_at_1, {.num_parallel_calls = 2}),
        range(3).map([&](const Tensor& x) { return fail_at_1(x.item<int64_t>()); }),
        range(3).flat_map([&](int64_t x) { return Dataset::range(fail_at_1(x), x + 1); }),
        range(3).filter([&](int64_t x) { return fail_at_1(x) >= 0; })}) {
    auto iterator = dataset.iterator();
    EXPECT_EQ(iterator.get_next().tensor().item<int64_t>(), 0);
    try {
      iterator.get_next();
      ADD_FAILURE() << "no error";
    } catch (const InvalidArgumentError& error) {
      EXPECT_THAT(error.what(),
                  HasSubstr("element 1: the function threw an OutOfRangeError: mine"));
    }
    EXPECT_EQ(iterator.get_next().tensor().item<int64_t>(), 2);
    EXPECT_THROW(iterator.get_next(), OutOfRangeError);
  }
}

TEST_P(Map, TakesMembersOneByOne) {
  const Dataset pairs = input(Dataset::from_tensor_slices(
      tuple(at::arange(3, at::kLong), StringTensor({"a", "bb", "ccc"}))));
  EXPECT_THAT(texts(pairs.map([](const Tensor& x, const StringTensor& s) { return tuple(s, x); })),
              ElementsAre("(\"a\", 0)", "(\"bb\", 1)", "(\"ccc\", 2)"));
  EXPECT_THAT(ints(pairs.map([](int64_t x, std::string_view s) {
                return x + static_cast<int64_t>(s.size());
              })),
              ElementsAre(1, 3, 5));
  EXPECT_THAT(ints(pairs.map([](const Structure& x, std::string s) {
                return x.tensor() + static_cast<int64_t>(s.size());
              })),
              ElementsAre(1, 3, 5));
  const Dataset named = input(Dataset::from_tensor_slices(
      dict({{"x", at::arange(3, at::kLong)}, {"y", at::arange(3, at::kLong)}})));
  EXPECT_THAT(ints(named.map([](const Structure& row) { return row["x"].tensor() * 2; })),
              ElementsAre(0, 2, 4));
}

// By position, a label would be taken for an image where somebody wrote the label first.
TEST_P(Map, MembersOfADictAreNotTakenByPosition) {
  const Dataset named = input(Dataset::from_tensor_slices(
      dict({{"label", at::arange(3, at::kLong)}, {"image", at::zeros({3, 2})}})));
  const auto refusal = [](const Dataset& dataset) {
    return thrown<InvalidArgumentError>([&] { texts(dataset); });
  };
  const auto by_name = HasSubstr("return tuple(x[\"label\"], x[\"image\"]); }");
  EXPECT_THAT(refusal(named.map([](const Tensor& image, const Tensor&) { return image; })),
              by_name);
  EXPECT_THAT(refusal(named.batch(2).map([](const Tensor& image, const Tensor&) { return image; },
                                         {.vectorized = true})),
              by_name);
  EXPECT_THAT(refusal(named.filter([](const Tensor&, const Tensor&) { return true; })), by_name);
  const Dataset numbers = input(Dataset::from_tensor_slices(
      dict({{"y", at::arange(3, at::kLong)}, {"x", at::arange(3, at::kLong)}})));
  EXPECT_THAT(refusal(numbers.map([](int64_t x, int64_t y) { return x - y; })),
              HasSubstr("the function takes 2"))
      << "loops over blocks";
}

// As those of a CSV file of one column.
TEST_P(Map, UnpacksATupleOfOneMember) {
  const Dataset ones = input(Dataset::from_tensor_slices(tuple(at::arange(3))));
  EXPECT_THAT(ints(ones.map([](int64_t x) { return 2 * x; })), ElementsAre(0, 2, 4));
  EXPECT_THAT(ints(ones.map([](const Tensor& x) { return x * 2; })), ElementsAre(0, 2, 4));
  EXPECT_THAT(ints(ones.map([](const Tensor& x) { return x * 2; }, {.vectorized = true})),
              ElementsAre(0, 2, 4));
  EXPECT_THAT(ints(ones.map([](random::RandomGenerator&, int64_t x) { return x; })),
              ElementsAre(0, 1, 2));
  EXPECT_THAT(ints(ones.map([](int64_t x) { return x; }).filter([](int64_t x) { return x > 0; })),
              ElementsAre(1, 2));
  EXPECT_THAT(texts(ones.filter([](int64_t x) { return x > 0; })), ElementsAre("(1,)", "(2,)"));
  EXPECT_THAT(texts(ones.map([](const Structure& x) { return tuple(x, x); }).take(1)),
              ElementsAre("((0,), (0,))"));
  EXPECT_THROW(texts(ones.map([](int64_t x, int64_t y) { return x + y; })), InvalidArgumentError);
}

TEST_P(Map, ReturnsScalarsStringsAndTuples) {
  const Dataset scalars = range(2);
  EXPECT_THAT(texts(scalars.map([](int64_t x) { return std::tuple(x, x > 0, 0.5 * x); })),
              ElementsAre("(0, false, 0.0)", "(1, true, 0.5)"));
  EXPECT_THAT(
      texts(scalars.map([](int64_t x) { return std::pair(x, std::to_string(x)); }).batch(2)),
      ElementsAre("([0, 1], [\"0\", \"1\"])"));
  EXPECT_THAT(texts(scalars.map([](const Tensor& x) { return std::pair(x, std::tuple(x, 1)); })),
              ElementsAre("(0, (0, 1))", "(1, (1, 1))"));
  EXPECT_EQ(scalars.map([](int64_t x) { return 0.5f * x; }).element_spec(),
            TensorSpec(std::vector<int64_t>{}, float32));
  EXPECT_EQ(scalars.map([](int64_t x) { return 0.5 * x; }).iterator().get_next().tensor().dtype(),
            float64);
}

TEST_P(Map, WidensScalarsAndRefusesToNarrowThem) {
  const Dataset floats = input(Dataset::from_tensor_slices(at::ones({3})));
  EXPECT_THAT(texts(floats.map([](double x) { return x + 0.5; }).batch(2)),
              ElementsAre("[1.5, 1.5]", "[1.5]"));
  for (const Dataset& narrow : {range(3).map([](int32_t x) { return x; }),
                                range(3).map([](int32_t x) { return x; }).batch(2),
                                range(3).map([](int32_t x) { return Structure(x); })}) {
    const std::string text = thrown<InvalidArgumentError>([&] { texts(narrow); });
    EXPECT_THAT(text, HasSubstr("argument 0 of the function is a int32"));
    EXPECT_THAT(text, HasSubstr("int64 []"));
  }
}

TEST_P(Map, RefusesElementsThatDoNotFitItsArguments) {
  const auto text = [](const Dataset& dataset) {
    return thrown<InvalidArgumentError>([&] { texts(dataset.batch(2)); });
  };
  EXPECT_THAT(text(range(3).map([](const Tensor& a, const Tensor&) { return a; })),
              HasSubstr("takes 2 arguments, but the element is one leaf"));
  EXPECT_THAT(text(range(3).map([](int64_t a, int64_t b) { return a + b; })),
              HasSubstr("takes 2 arguments, but the element is one leaf"));
  EXPECT_THAT(text(range(3).enumerate().map([](int64_t a) { return a; })),
              HasSubstr("argument 0 of the function is a number"));
  EXPECT_THAT(text(range(3).map([](std::string_view s) { return std::string(s); })),
              HasSubstr("argument 0 of the function is a string"));
  EXPECT_THAT(
      text(input(Dataset::from_tensor_slices(at::zeros({3, 2}))).map([](float x) { return x; })),
      HasSubstr("float32 [2]"));
}

TEST_P(Map, VectorizedGetsBlocks) {
  const auto add_one = [](const Tensor& block) { return block + 1; };
  const Dataset mapped = range(5).map(add_one, {.vectorized = true});
  EXPECT_THAT(ints(mapped), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(texts(mapped.batch(3)), ElementsAre("[1, 2, 3]", "[4, 5]"));
  EXPECT_EQ(mapped.element_spec(), TensorSpec(std::vector<int64_t>{}, int64));
  int calls = 0;
  const auto counted = [&](const Tensor& block) {
    ++calls;
    return block;
  };
  EXPECT_EQ(Dataset::range(100)
                .map(counted, {.vectorized = true})
                .batch(100)
                .iterator()
                .get_next()
                .tensor()
                .size(0),
            100);
  EXPECT_EQ(calls, 1);
}

TEST_P(Map, VectorizedMustReturnARowForEachElement) {
  const Dataset bad =
      range(5).map([](const Tensor& block) { return block.sum(); }, {.vectorized = true});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { texts(bad.batch(3)); }),
              HasSubstr("got a block of 3 elements (0 to 2) and returned shape []"));
  EXPECT_THROW(range(5).map(twice, {.vectorized = true}), InvalidArgumentError);
}

TEST_P(Map, SaysWhichElementFailedAndGoesOn) {
  const auto fail_at_3 = [](int64_t x) {
    if (x == 3) throw NotFoundError("no such thing");
    return x;
  };
  const auto tensors = [&](const Tensor& x) {
    return Tensor(x + 0 * fail_at_3(x.item<int64_t>()));
  };
  for (const Dataset& failing : {range(6).map(fail_at_3), range(6).map(tensors)}) {
    auto iterator = failing.iterator();
    for (int i = 0; i < 3; ++i) iterator.get_next();
    EXPECT_EQ(thrown<NotFoundError>([&] { iterator.next(); }), "map: element 3: no such thing");
    EXPECT_THAT(ints(iterator), ElementsAre(4, 5));

    auto batches = failing.batch(2).iterator();
    batches.get_next();
    EXPECT_THAT(thrown<NotFoundError>([&] { batches.next(); }), StartsWith("map: element 3"));
    EXPECT_THAT(ints(batches), ElementsAre(4, 5));  // its batch is lost, no other
  }
}

TEST_P(Map, KeepsTheClassesOfErrors) {
  const auto throwing = [this](auto error) {
    return range(1).map([error](const Structure& x) -> Structure {
      throw error;
      return x;
    });
  };
  EXPECT_THROW(texts(throwing(AbortedError("x"))), AbortedError);
  EXPECT_THROW(texts(throwing(DataLossError("x"))), DataLossError);
  EXPECT_EQ(thrown<UnknownError>([&] { texts(throwing(std::logic_error("why"))); }),
            "map: element 0: why");
  EXPECT_THROW(texts(throwing(7)), int);
  const Dataset shapes = range(1).map([](const Tensor&) { return at::ones({2}) + at::ones({3}); });
  EXPECT_THROW(texts(shapes), InvalidArgumentError);
}

TEST_P(Map, FindsItsSpecByCallingOnce) {
  int calls = 0;
  const Dataset mapped = range(3).map([&](const Tensor& x) {
    ++calls;
    return tuple(x.to(float32), at::zeros({4}));
  });
  EXPECT_EQ(calls, 0);
  const StructureSpec expected = StructureSpec::make_tuple(
      {TensorSpec(std::vector<int64_t>{}, float32), TensorSpec({{4}}, float32)});
  EXPECT_EQ(mapped.element_spec(), expected);
  EXPECT_EQ(mapped.repeat().element_spec(), expected);
  EXPECT_EQ(calls, 1);
}

TEST_P(Map, KeepsUnknownBatchSizesUnknown) {
  const Dataset batches = range(8).batch(5);
  const Dataset mapped = batches.map([](const Tensor& x) { return tuple(x * 2, at::zeros({3})); });
  EXPECT_EQ(mapped.element_spec(), StructureSpec::make_tuple({TensorSpec({{kUnknownDim}}, int64),
                                                              TensorSpec({{3}}, float32)}));
}

TEST_P(Map, NeedsASpecOverNoElements) {
  EXPECT_THAT(thrown<FailedPreconditionError>(
                  [&] { range(0).map([](const Tensor& x) { return x; }).element_spec(); }),
              HasSubstr("output_spec"));
  EXPECT_EQ(range(0).map(twice).element_spec(), TensorSpec(std::vector<int64_t>{}, int64));
}

TEST_P(Map, HoldsTheFunctionToItsOutputSpec) {
  const auto grow = [](const Tensor& x) { return at::zeros({1 + x.item<int64_t>() / 2}); };
  const Dataset mapped = range(3).map(grow, {.output_spec = TensorSpec({{1}}, float32)});
  EXPECT_EQ(mapped.element_spec(), StructureSpec(TensorSpec({{1}}, float32)));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { texts(mapped); }),
              HasSubstr("the result for element 2 does not fit output_spec"));
}

TEST_P(Map, RecordsNoGradients) {
  const Tensor weight = at::ones({}).requires_grad_();
  const Dataset mapped = range(1).map([&](const Tensor& x) { return x * weight; });
  EXPECT_FALSE(mapped.iterator().get_next().tensor().requires_grad());
  EXPECT_FALSE(mapped.prefetch(1).iterator().get_next().tensor().requires_grad());
}

constexpr int64_t kRowSide = 96;  // a row that is worth it

// An element in the memory that is offered, and how many were.
struct RowMaker {
  std::vector<bool>* in_rows;
  Tensor operator()(const Tensor& number) const {
    Tensor result = internal::empty_result({kRowSide, kRowSide}, float32);
    in_rows->push_back(internal::is_row(result));
    return result.fill_(number);
  }
};

void expect_rows(const Dataset& dataset, int64_t count) {
  int64_t next = 0;
  for (const Structure& batch : dataset) {
    for (int64_t i = 0; i < batch.tensor().size(0); ++i, ++next) {
      EXPECT_TRUE(batch.tensor()[i].eq(next).all().item<bool>()) << next;
    }
  }
  EXPECT_EQ(next, count);
}

TEST(MapInRows, ElementsAreMadeInTheirBatch) {
  std::vector<bool> in_rows;
  expect_rows(Dataset::range(22).map(RowMaker{&in_rows}).batch(4), 22);
  EXPECT_GE(std::ranges::count(in_rows, true), 16);
}

TEST(MapInRows, OfIteratorsWithoutPositionsToo) {
  std::vector<bool> in_rows;
  const auto odd = [](const Tensor& number) { return number.ge(0).item<bool>(); };
  expect_rows(Dataset::range(22).filter(odd).map(RowMaker{&in_rows}).batch(4), 22);
  EXPECT_GE(std::ranges::count(in_rows, true), 16);
}

TEST(MapInRows, OfParallelMapsToo) {
  const auto make = [](const Tensor& number) {
    return internal::empty_result({kRowSide, kRowSide}, float32).fill_(number);
  };
  const auto kept = [](const Tensor& number) { return number.ge(0).item<bool>(); };
  expect_rows(Dataset::range(60).map(make, {.num_parallel_calls = 3}).batch(4), 60);
  expect_rows(Dataset::range(60).filter(kept).map(make, {.num_parallel_calls = 3}).batch(4), 60);
}

TEST(MapInRows, WhatAFunctionKeepsIsNotTheBatchs) {
  std::vector<Tensor> kept;
  const auto make = [&](const Tensor& number) {
    kept.push_back(internal::empty_result({kRowSide, kRowSide}, float32).fill_(number));
    return kept.back();
  };
  for (const Structure& batch : Dataset::range(12).map(make).batch(4)) batch.tensor().fill_(-1);
  for (const Tensor& tensor : kept) EXPECT_TRUE(tensor.ge(0).all().item<bool>());
}

TEST(MapInRows, AFailedElementCostsItsBatchAlone) {
  const auto make = [](const Tensor& number) {
    if (number.item<int64_t>() == 9) throw std::runtime_error("nine");
    return internal::empty_result({kRowSide, kRowSide}, float32).fill_(number);
  };
  std::set<float> seen;
  for (const Structure& batch : Dataset::range(24).map(make).batch(4).ignore_errors()) {
    for (int64_t i = 0; i < 4; ++i) seen.insert(batch.tensor()[i].max().item<float>());
  }
  EXPECT_EQ(seen.size(), 20);
  EXPECT_FALSE(seen.contains(8));
}

}  // namespace
}  // namespace cohort::data
