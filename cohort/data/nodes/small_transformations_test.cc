// Those that are a few lines each.
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "cohort/data/test_util.h"

namespace cohort::data {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(TakeWhile, StopsForGood) {
  const Dataset dataset = Dataset::range(10).map([](int64_t x) { return x % 4; });
  EXPECT_THAT(ints(dataset.take_while([](int64_t x) { return x < 3; })), ElementsAre(0, 1, 2));
  EXPECT_THAT(ints(dataset.take_while([](const Tensor& x) { return x < 3; }).repeat(2)),
              ElementsAre(0, 1, 2, 0, 1, 2));
  EXPECT_EQ(thrown<InvalidArgumentError>([&] {
              texts(dataset.take_while([](int64_t x) { return x; }));
            }).substr(0, 21),
            "take_while: element 0");
}

TEST(Scan, CarriesAState) {
  const auto sums = [](int64_t sum, int64_t x) { return std::pair(sum + x, sum + x); };
  const Dataset dataset = Dataset::range(5).scan(Structure(0), sums);
  EXPECT_THAT(ints(dataset), ElementsAre(0, 1, 3, 6, 10));
  EXPECT_THAT(ints(dataset.repeat(2)), ElementsAre(0, 1, 3, 6, 10, 0, 1, 3, 6, 10));
  EXPECT_EQ(dataset.element_spec(), StructureSpec(TensorSpec(std::vector<int64_t>{}, int64)));
  EXPECT_EQ(dataset.cardinality(), 5);
}

TEST(Scan, EveryPassBeginsWithTheInitialState) {
  const Structure initial(0);
  const Dataset dataset =
      Dataset::range(4).scan(initial, [](const Structure& sum, const Structure& x) {
        sum.tensor().add_(x.tensor());
        return tuple(sum.tensor(), Tensor(sum.tensor().clone()));
      });
  EXPECT_THAT(ints(dataset.repeat(2)), ElementsAre(0, 1, 3, 6, 0, 1, 3, 6));
  EXPECT_THAT(ints(dataset), ElementsAre(0, 1, 3, 6));
  EXPECT_EQ(internal::str(initial), "0");
}

// What has come out stays as it is.
TEST(Scan, TheFunctionMayWriteToItsState) {
  const Dataset sums =
      Dataset::range(4).scan(Structure(0), [](const Structure& sum, const Structure& x) {
        sum.tensor().add_(x.tensor());
        return tuple(sum, tuple(sum, sum.tensor().view({1})));
      });
  std::vector<Structure> elements;
  for (const Structure& element : sums) elements.push_back(element);
  EXPECT_EQ(internal::str(Structure::make_tuple(elements)),
            "((0, [0]), (1, [1]), (3, [3]), (6, [6]))");
}

TEST(Scan, TheFunctionMayWriteToASparseState) {
  const Dataset sums =
      Dataset::from_tensor_slices(at::eye(2))
          .scan(Structure(at::zeros({2}).to_sparse()), [](const Tensor& sum, const Tensor& x) {
            Tensor(sum).add_(x.to_sparse());
            return tuple(sum, sum);
          });
  std::vector<Tensor> elements;
  for (const Structure& element : sums) elements.push_back(element.tensor());
  EXPECT_EQ(internal::str(Structure(elements.at(0).to_dense())), "[1.0, 0.0]");
  EXPECT_EQ(internal::str(Structure(elements.at(1).to_dense())), "[1.0, 1.0]");
}

// A state may be an element of the input.
TEST(CarriedState, IsNoMemoryOfTheInput) {
  const Tensor rows = at::arange(1, 4, int64);
  const Dataset dataset = Dataset::from_tensor_slices(rows);
  const auto sum = [](const Tensor& state, const Tensor& x) {
    return state.item<int64_t>() < 0 ? x : Tensor(state).add_(x);
  };
  const auto state_and_element = [&](const Tensor& state, const Tensor& x) {
    const Tensor next = sum(state, x);
    return tuple(next, next);
  };
  EXPECT_EQ(internal::str(dataset.reduce(Structure(-1), sum)), "6");
  EXPECT_THAT(ints(dataset.scan(Structure(-1), state_and_element)), ElementsAre(1, 3, 6));
  EXPECT_THAT(ints(dataset), ElementsAre(1, 2, 3));
}

TEST(Scan, ErrorsNameTheElement) {
  const auto text = [](const Dataset& dataset) {
    return thrown<InvalidArgumentError>([&] { texts(dataset); });
  };
  EXPECT_THAT(text(Dataset::range(3).scan(Structure(0), [](int64_t s, int64_t) { return s; })),
              HasSubstr("for element 0 the function returned"));
  EXPECT_THAT(text(Dataset::range(3).scan(
                  Structure(0),
                  [](const Structure& s, const Structure& x) { return tuple(tuple(s, x), x); })),
              HasSubstr("state after element 0 is of another form"));
}

// tf.data's rule: a shape may change, form and dtype may not.
TEST(Scan, TheStateKeepsItsDtype) {
  const auto scanned = [](const auto& function) {
    return Dataset::range(3).scan(Structure(0), function);
  };
  EXPECT_THAT(thrown<InvalidArgumentError>(
                  [&] { texts(scanned([](int64_t, int64_t x) { return std::pair(1.5, x); })); }),
              AllOf(HasSubstr("scan: the state after element 0"), HasSubstr("dtype=int64"),
                    HasSubstr("dtype=float64")));
  EXPECT_THROW(texts(scanned([](const Structure&, int64_t x) { return std::pair("a", x); })),
               InvalidArgumentError);
}

TEST(Scan, WhatChangesBetweenElementsIsUnknownInItsSpec) {
  const StructureSpec rows(TensorSpec({{kUnknownDim}}, int64));
  const Dataset batches = Dataset::range(5).batch(2).scan(
      Structure(0), [](const Structure& s, const Structure& x) { return tuple(s, tuple(s, x)); });
  EXPECT_EQ(batches.element_spec(),
            StructureSpec::make_tuple({TensorSpec(std::vector<int64_t>{}, int64), rows}));
  const Dataset grown = Dataset::range(3).scan(Structure(at::empty({0}, int64)),
                                               [](const Tensor& seen, const Tensor& x) {
                                                 const Tensor all = at::cat({seen, x.view({1})});
                                                 return tuple(all, all);
                                               });
  EXPECT_EQ(grown.element_spec(), rows);
  EXPECT_THAT(texts(grown).back(), "[0, 1, 2]");
}

TEST(Reduce, TheStateKeepsItsDtype) {
  EXPECT_THAT(thrown<InvalidArgumentError>([] {
                Dataset::range(3).reduce(Structure(0), [](int64_t, int64_t) { return 1.5; });
              }),
              AllOf(HasSubstr("reduce: the state after element 0"), HasSubstr("dtype=int64"),
                    HasSubstr("dtype=float64")));
  EXPECT_THROW(Dataset::range(3).reduce(Structure(0),
                                        [](const Structure&, int64_t) { return std::string("a"); }),
               InvalidArgumentError);
  const Structure grown = Dataset::range(3).reduce(Structure(at::empty({0}, int64)),
                                                   [](const Tensor& seen, const Tensor& x) {
                                                     return at::cat({seen, x.view({1})});
                                                   });
  EXPECT_EQ(internal::str(grown), "[0, 1, 2]");
}

TEST(Reduce, FoldsAllElements) {
  const auto add = [](int64_t sum, int64_t x) { return sum + x; };
  EXPECT_EQ(internal::str(Dataset::range(5).reduce(Structure(100), add)), "110");
  EXPECT_EQ(internal::str(Dataset::range(0).reduce(Structure(100), add)), "100");
  const Structure both =
      Dataset::range(4).reduce(tuple(0, 1.5), [](const Structure& state, const Tensor& x) {
        return tuple(Tensor(state[0].tensor() + x), state[1]);
      });
  EXPECT_EQ(internal::str(both), "(6, 1.5)");
  EXPECT_EQ(thrown<NotFoundError>([] {
              Dataset::range(3).reduce(Structure(0), [](int64_t, int64_t x) {
                if (x == 1) throw NotFoundError("no such thing");
                return x;
              });
            }),
            "reduce: element 1: no such thing");
}

TEST(Reduce, TheFunctionMayWriteToItsState) {
  const Tensor total = at::zeros({}, int64);
  for (int time = 0; time < 2; ++time) {
    const Structure sum = Dataset::range(5).reduce(
        Structure(total),
        [](const Tensor& state, const Tensor& x) { return Tensor(state).add_(x); });
    EXPECT_EQ(internal::str(sum), "10");
  }
  EXPECT_EQ(total.item<int64_t>(), 0);
}

TEST(RandomSource, IsASequenceOfItsSeed) {
  const auto first = [](const Dataset& dataset) { return ints(dataset.take(50)); };
  const std::vector<int64_t> numbers = first(Dataset::random(1));
  EXPECT_THAT(numbers, Each(testing::AllOf(testing::Ge(0), testing::Lt(int64_t{1} << 32))));
  EXPECT_EQ(std::set(numbers.begin(), numbers.end()).size(), 50u);
  EXPECT_EQ(first(Dataset::random(1)), numbers);
  EXPECT_EQ(ints(Dataset::random(1).batch(5).take(10)), numbers);
  EXPECT_NE(first(Dataset::random(2)), numbers);
  EXPECT_NE(first(Dataset::random()), first(Dataset::random()));
  EXPECT_EQ(Dataset::random(1).cardinality(), kInfiniteCardinality);

  auto iterator = Dataset::random().iterator();
  iterator.get_next();
  auto restored = Dataset::random().iterator();
  restored.restore(iterator.state());
  EXPECT_EQ(internal::str(restored.get_next()), internal::str(iterator.get_next()));
}

TEST(IgnoreErrors, LeavesOutWhatFails) {
  const Dataset dataset = Dataset::range(6).map([](int64_t x) {
    if (x % 2 == 0) throw NotFoundError("no such thing");
    return x;
  });
  EXPECT_THAT(ints(dataset.ignore_errors()), ElementsAre(1, 3, 5));
  EXPECT_THAT(ints(dataset.ignore_errors().batch(2)), ElementsAre(1, 3, 5));
  EXPECT_EQ(dataset.ignore_errors().cardinality(), kUnknownCardinality);
}

TEST(IgnoreErrors, ThrowsWhatIsOfNoElement) {
  int calls = 0;
  const auto failing_with = [&](const auto& error) {
    return Dataset::range(6)
        .map([&calls, error](int64_t x) {
          ++calls;
          if (x == 2) throw error;
          return x;
        })
        .ignore_errors();
  };
  EXPECT_THROW(ints(failing_with(CancelledError("stopped"))), CancelledError);
  EXPECT_THROW(ints(failing_with(PermissionDeniedError("no"))), PermissionDeniedError);
  EXPECT_THROW(ints(failing_with(ResourceExhaustedError("full"))), ResourceExhaustedError);
  EXPECT_THROW(ints(failing_with(FailedPreconditionError("late"))), FailedPreconditionError);
  EXPECT_EQ(calls, 12);
}

TEST(AssertCardinality, HoldsTheInputToIt) {
  const Dataset unknown = Dataset::range(6).filter([](int64_t x) { return x > 1; });
  EXPECT_EQ(unknown.assert_cardinality(4).cardinality(), 4);
  EXPECT_THAT(ints(unknown.assert_cardinality(4)), ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(ints(unknown.assert_cardinality(4).batch(3)), ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(thrown<FailedPreconditionError>([&] { texts(unknown.assert_cardinality(5)); }),
              HasSubstr("5 elements were promised, but there are 4"));
  EXPECT_THAT(thrown<FailedPreconditionError>([&] { texts(unknown.assert_cardinality(3)); }),
              HasSubstr("3 elements were promised, but there are more"));
  EXPECT_THAT(thrown<FailedPreconditionError>(
                  [&] { texts(unknown.assert_cardinality(kInfiniteCardinality)); }),
              HasSubstr("infinitely many"));
  EXPECT_THROW(unknown.assert_cardinality(-2), InvalidArgumentError);
}

TEST(Apply, CallsAFunctionOfTheDataset) {
  const auto doubled = [](const Dataset& dataset) {
    return dataset.map([](int64_t x) { return 2 * x; });
  };
  EXPECT_THAT(ints(Dataset::range(3).apply(doubled).skip(1)), ElementsAre(2, 4));
  EXPECT_EQ(Dataset::range(3).apply([](const Dataset& dataset) { return dataset.cardinality(); }),
            3);
}

}  // namespace
}  // namespace cohort::data
