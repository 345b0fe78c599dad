#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include "cohort/core/testing_errors.h"
#include "cohort/data/test_util.h"

namespace cohort::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Reducer sum_and_count() {
  return Reducer([](int64_t key) { return std::tuple(1000 * key, int64_t{0}); },
                 [](const Structure& state, int64_t x) {
                   return std::tuple(state[0].tensor().item<int64_t>() + x,
                                     state[1].tensor().item<int64_t>() + 1);
                 },
                 [](int64_t sum, int64_t count) { return 100 * sum + count; });
}

int64_t remainder(int64_t x) { return x % 3 - 1; }

TEST(GroupByReducer, GivesOneElementAKeyTheLeastFirst) {
  const Dataset reduced = Dataset::range(10).group_by_reducer(remainder, sum_and_count());
  EXPECT_THAT(ints(reduced), ElementsAre(-98196, 1203, 101503));
  EXPECT_EQ(reduced.cardinality(), kUnknownCardinality);
  EXPECT_THAT(reduced.explain(),
              HasSubstr("group_by_reducer(): TensorSpec(shape=(), dtype=int64)"));
  EXPECT_TRUE(ints(Dataset::range(0).group_by_reducer(remainder, sum_and_count())).empty());
}

TEST(GroupByReducer, Errors) {
  const auto all = outcomes(Dataset::range(6).group_by_reducer(
      [](int64_t x) {
        if (x == 4) throw NotFoundError("no key");
        return x % 2;
      },
      Reducer([](int64_t) { return int64_t{0}; }, [](int64_t sum, int64_t x) { return sum + x; },
              [](int64_t sum) {
                if (sum == 2) throw NotFoundError("no end");
                return sum;
              })));
  EXPECT_EQ(all[0], "NOT_FOUND: group_by_reducer: element 4: no key");
  EXPECT_EQ(all[1], "NOT_FOUND: group_by_reducer: key 0: no end");
  EXPECT_EQ(all[2], internal::str(Structure(int64_t{9})));
  EXPECT_EQ(all.size(), 3u);
  const auto forms = outcomes(Dataset::range(1).group_by_reducer(
      remainder,
      Reducer([](int64_t) { return int64_t{0}; }, [](int64_t, int64_t) { return at::zeros({}); },
              [](const Tensor& state) { return state; })));
  ASSERT_EQ(forms.size(), 1u);
  EXPECT_THAT(forms[0], HasSubstr("is of another form than before"));
}

TEST(GroupByReducer, Resumes) {
  expect_resumable([] {
    return sequential(Dataset::range(20)).group_by_reducer(remainder, sum_and_count()).repeat(2);
  });
}

}  // namespace
}  // namespace cohort::data
