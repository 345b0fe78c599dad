// Of variables of this process; served ones: served_variable_test.cc.
#include "cohort/parameter_server/variables/sharded_variable.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"
#include "cohort/data/testing_files.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/train/checkpoint.h"

namespace cohort::distribute {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor ids_of(std::vector<int64_t> ids) { return at::tensor(ids, int64); }

// Rows of `values` in parts of the given sizes.
ShardedVariable in_parts(const Tensor& values, const std::vector<int64_t>& sizes) {
  std::vector<Variable> parts;
  int64_t begin = 0;
  for (const int64_t size : sizes) {
    parts.emplace_back(values.narrow(0, begin, size).clone(),
                       VariableOptions{.name = "part_" + std::to_string(parts.size())});
    begin += size;
  }
  return ShardedVariable(std::move(parts), "s");
}

ShardedVariable pairs() {
  return in_parts(at::tensor({0.f, 0.f, 1.f, 1.f, 2.f, 2.f, 3.f, 3.f}).reshape({4, 2}), {1, 2, 1});
}

std::vector<float> part(const ShardedVariable& s, size_t i) {
  const Tensor flat = s.variables()[i].value().detach().flatten();
  return {flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel()};
}

TEST(ShardedVariable, AssignsEachPartItsRowsAndReturnsItself) {
  const ShardedVariable s = pairs();
  const Tensor fours = at::tensor({4.f, 4.f, 5.f, 5.f, 6.f, 6.f, 7.f, 7.f}).reshape({4, 2});
  EXPECT_EQ(&s.assign(fours), &s);
  EXPECT_THAT(part(s, 0), ElementsAre(4, 4));
  EXPECT_THAT(part(s, 1), ElementsAre(5, 5, 6, 6));
  EXPECT_THAT(part(s, 2), ElementsAre(7, 7));
  const ShardedVariable added =
      pairs().assign_add(at::tensor({1.f, 1.f, 1.f, 1.f, 2.f, 2.f, 2.f, 2.f}).reshape({4, 2}));
  EXPECT_THAT(part(added, 1), ElementsAre(2, 2, 4, 4));
  EXPECT_THAT(part(added, 2), ElementsAre(5, 5));
  const ShardedVariable less =
      pairs().assign_sub(at::tensor({0.f, 0.f, 1.f, 1.f, 1.f, 1.f, 3.f, 3.f}).reshape({4, 2}));
  EXPECT_THAT(part(less, 1), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(part(less, 2), ElementsAre(0, 0));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                s.assign(at::zeros({3, 2}));
              }),
              HasSubstr("ShardedVariable 's', which is [4,2]"));
}

TEST(ShardedVariable, HasTheOperatorsOfItsConcatenation) {
  const ShardedVariable s = pairs();
  const Tensor whole = s.value();
  EXPECT_TRUE(at::equal(s + 1, whole + 1));
  EXPECT_TRUE(at::equal(2 * s - whole, whole));
  EXPECT_TRUE(at::equal(-s / 2, -whole / 2));
  EXPECT_TRUE(at::equal(s * s.variables()[0].value(), whole * whole.narrow(0, 0, 1)));
  EXPECT_TRUE(at::equal(s >= 2, whole >= 2));
  EXPECT_TRUE(at::equal(s == whole, at::ones({4, 2}, at::kBool)));
}

TEST(ShardedVariable, KnowsItsFormAndRefusesPartsThatDoNotFit) {
  const ShardedVariable s = pairs();
  EXPECT_THAT(s.shape(), ElementsAre(4, 2));
  EXPECT_EQ(s.dtype(), float32);
  EXPECT_EQ(s.name(), "s");
  EXPECT_EQ(s.value().size(0), 4);
  EXPECT_TRUE(at::equal(Tensor(s) + 1, s.value() + 1));
  const auto refused = [](std::vector<Variable> parts) {
    return thrown<InvalidArgumentError>([&] { ShardedVariable{parts}; });
  };
  EXPECT_THAT(refused({}), HasSubstr("one variable or more"));
  EXPECT_THAT(refused({Variable(at::zeros({2, 2}), {.name = "a"}),
                       Variable(at::zeros({2, 3}), {.name = "b"})}),
              HasSubstr("'b' float32 [2,3] does not fit 'a' float32 [2,2]"));
  EXPECT_THAT(refused({Variable(at::zeros({2}), {.name = "a"}),
                       Variable(at::zeros({2}, float64), {.name = "b"})}),
              HasSubstr("'b' float64 [2]"));
  EXPECT_THAT(refused({Variable(1., {.name = "a"})}), HasSubstr("rank 0"));
  EXPECT_THAT(refused({Variable()}), HasSubstr("empty handle"));
  std::ostringstream out;
  out << in_parts(at::zeros({2}), {1, 1});
  EXPECT_EQ(out.str(),
            "ShardedVariable:[\n  <Variable 'part_0:0' shape=[1] dtype=float32 value=[0.0]>,\n"
            "  <Variable 'part_1:0' shape=[1] dtype=float32 value=[0.0]>\n]");
}

TEST(ShardedVariable, OfAnyVariableHasItsParts) {
  const Variable v(at::arange(6).reshape({3, 2}), {.name = "v"});
  const ShardedVariable s = ShardedVariable::of(v);
  ASSERT_EQ(s.variables().size(), 1u);
  EXPECT_EQ(s.variables()[0], v);
  EXPECT_TRUE(at::equal(s[-1], ids_of({4, 5})));
  EXPECT_THAT(v.device(), HasSubstr("device:CPU:0"));
}

TEST(ShardedVariable, ScattersIntoPartsHoweverUneven) {
  using Scatter = const ShardedVariable& (ShardedVariable::*)(const IndexedSlices&) const;
  using ScatterOne = const Variable& (Variable::*)(const IndexedSlices&) const;
  const std::pair<Scatter, ScatterOne> operations[] = {
      {&ShardedVariable::scatter_add, &Variable::scatter_add},
      {&ShardedVariable::scatter_sub, &Variable::scatter_sub},
      {&ShardedVariable::scatter_update, &Variable::scatter_update},
      {&ShardedVariable::batch_scatter_update, &Variable::scatter_update},
      {&ShardedVariable::scatter_min, &Variable::scatter_min},
      {&ShardedVariable::scatter_max, &Variable::scatter_max},
      {&ShardedVariable::scatter_mul, &Variable::scatter_mul},
      {&ShardedVariable::scatter_div, &Variable::scatter_div},
  };
  const IndexedSlices slices{.values = at::arange(1, 7, float32).reshape({6, 1}),
                             .indices = ids_of({31, 10, 0, 12, 30, 11})};
  for (const auto& sizes : {std::vector<int64_t>{11, 11, 10}, {5, 26, 1}, {32}}) {
    for (const auto& [sharded, plain] : operations) {
      const Tensor start = at::arange(32, float32).reshape({32, 1});
      const Variable v(start);
      const ShardedVariable s = in_parts(start, sizes);
      (v.*plain)(slices);
      EXPECT_EQ(&(s.*sharded)(slices), &s);
      EXPECT_TRUE(at::equal(s.value(), v.value()));
    }
  }
  const ShardedVariable s = pairs();
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                s.scatter_add({.values = at::ones({1, 1, 2}), .indices = at::zeros({1, 1}, int64)});
              }),
              HasSubstr("takes indices [n]"));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                s.scatter_add({.values = at::ones({1, 2}), .indices = ids_of({4})});
              }),
              HasSubstr("variable 's': indices[0] = 4 is not in [0, 4)"));
}

TEST(ShardedVariable, ReadsRowsInAnyOrder) {
  const ShardedVariable s = in_parts(at::arange(10, float32).reshape({5, 2}), {2, 2, 1});
  EXPECT_TRUE(at::equal(s.sparse_read(ids_of({4, 0, 3, 0})).select(1, 0),
                        at::tensor({8.f, 0.f, 6.f, 0.f})));
  EXPECT_EQ(s.sparse_read(ids_of({})).sizes(), at::IntArrayRef({0, 2}));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { s.sparse_read(ids_of({5})); }),
              HasSubstr("variable 's': the index 5 at place 0"));
  EXPECT_THROW(s.sparse_read(at::zeros({1, 1}, int64)), InvalidArgumentError);
  EXPECT_THROW(s.sparse_read(at::zeros({1})), InvalidArgumentError);
}

// With what Python's rules give for the concatenation.
TEST(ShardedVariable, SlicesAsItsConcatenation) {
  const Tensor whole = at::arange(7 * 3, float32).reshape({7, 3});
  for (const auto& sizes : {std::vector<int64_t>{3, 2, 2}, {1, 5, 1}, {7}}) {
    const ShardedVariable s = in_parts(whole, sizes);
    const std::vector<std::optional<int64_t>> bounds = {
        std::nullopt, -100, -7, -3, -1, 0, 1, 3, 6, 7, 100};
    for (const auto& start : bounds) {
      for (const auto& stop : bounds) {
        for (const std::optional<int64_t> step :
             std::vector<std::optional<int64_t>>{std::nullopt, 1, 2, 3, 100, -1, -2, -5, -100}) {
          // As CPython's slice.indices.
          const int64_t by = step.value_or(1);
          const int64_t low = by > 0 ? 0 : -1, high = by > 0 ? 7 : 6;
          const auto place = [&](const std::optional<int64_t>& bound, int64_t missing) {
            if (!bound) return missing;
            return std::min(std::max(*bound < 0 ? *bound + 7 : *bound, low), high);
          };
          std::vector<int64_t> ids;
          const int64_t end = place(stop, by > 0 ? high : low);
          for (int64_t i = place(start, by > 0 ? low : high); by > 0 ? i < end : i > end; i += by) {
            ids.push_back(i);
          }
          const Tensor found = s[Slice{.start = start, .stop = stop, .step = step}];
          EXPECT_TRUE(at::equal(found, whole.index_select(0, ids_of(ids))));
        }
      }
    }
  }
}

TEST(ShardedVariable, IndexesOtherDimensionsToo) {
  const Tensor whole = at::arange(24, float32).reshape({4, 3, 2});
  const ShardedVariable s = in_parts(whole, {2, 2});
  EXPECT_TRUE(at::equal(s[3], whole[3]));
  EXPECT_TRUE(at::equal(s[-4], whole[0]));
  EXPECT_TRUE(at::equal(s.index({1, 2, -1}), whole[1][2][1]));
  EXPECT_TRUE(
      at::equal(s.index({Slice{.start = 1}, Slice{.step = -1}}), whole.narrow(0, 1, 3).flip({1})));
  EXPECT_TRUE(at::equal(s.index({ellipsis, 0}), whole.select(2, 0)));
  EXPECT_TRUE(at::equal(s.index({ellipsis}), whole));
  EXPECT_TRUE(at::equal(s.index({}), whole));
  EXPECT_TRUE(at::equal(s.index({newaxis, 1, newaxis}),
                        whole[1].unsqueeze(0).unsqueeze(0).transpose(0, 1)));
  EXPECT_EQ(s.index({newaxis}).sizes(), at::IntArrayRef({1, 4, 3, 2}));
  EXPECT_EQ(s.index({Slice{}, newaxis, ellipsis, newaxis}).sizes(),
            at::IntArrayRef({4, 1, 3, 2, 1}));
  EXPECT_EQ(s.index({newaxis, newaxis, Slice{.stop = 0}, 1}).sizes(),
            at::IntArrayRef({1, 1, 0, 2}));
  const Tensor mask = at::tensor({1, 0, 0, 1}).to(at::kBool);
  EXPECT_TRUE(at::equal(s[mask], whole.index_select(0, ids_of({0, 3}))));
  const Tensor fine = whole > 13;
  EXPECT_TRUE(at::equal(s[fine], whole.masked_select(fine)));
  const Tensor two = whole.select(2, 0) > 13;
  EXPECT_EQ(s[two].size(0), two.sum().item<int64_t>());
  EXPECT_TRUE(at::equal(s.index({mask, 1}), whole.index_select(0, ids_of({0, 3})).select(1, 1)));
  EXPECT_TRUE(at::equal(s.index({two, Slice{.step = -1}}), s[two].flip(1)));
  EXPECT_EQ(s.index({mask, newaxis, ellipsis}).sizes(), at::IntArrayRef({2, 1, 3, 2}));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                s.index({1, mask});
              }),
              HasSubstr("item 1 of the index of 's' is a tensor; a mask is the first item"));
  const ShardedVariable no_rows = in_parts(at::zeros({0, 3}), {0});
  EXPECT_EQ(no_rows[at::zeros({0}, at::kBool)].sizes(), at::IntArrayRef({0, 3}));
  EXPECT_EQ(no_rows[at::zeros({0, 3}, at::kBool)].sizes(), at::IntArrayRef({0}));
}

TEST(ShardedVariable, RefusesWhatIndexesNothing) {
  const ShardedVariable s = pairs();
  EXPECT_THAT(thrown<OutOfRangeError>([&] { s[4]; }),
              HasSubstr("index 4 of 's' is out of range: dimension 0 has 4 elements"));
  EXPECT_THROW(s[-5], OutOfRangeError);
  EXPECT_THAT(thrown<OutOfRangeError>([&] { s.index({0, 2}); }), HasSubstr("dimension 1"));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { s[Slice{.step = 0}]; }), HasSubstr("step 0"));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { s[ids_of({1})]; }), HasSubstr("sparse_read"));
  EXPECT_THROW(s.index({ellipsis, ellipsis}), InvalidArgumentError);
  EXPECT_THROW(s.index({0, 0, 0}), InvalidArgumentError);
  EXPECT_THROW(s[at::ones({3}).to(at::kBool)], InvalidArgumentError);
}

TEST(ShardedVariable, TapesRecordItsRows) {
  const ShardedVariable s = in_parts(at::arange(10, float32).reshape({5, 2}), {3, 2});
  GradientTape tape;
  const Tensor loss = (s[Slice{.start = 2}] * 3).sum() + s[0].sum();
  const auto gradients = tape.gradient(loss, s.variables());
  const auto dense = [](const Tensor& t) { return t.layout() == at::kStrided ? t : t.to_dense(); };
  EXPECT_TRUE(at::equal(dense(gradients[0]).select(1, 0), at::tensor({1.f, 0.f, 3.f})));
  EXPECT_TRUE(at::equal(dense(gradients[1]).select(1, 1), at::tensor({3.f, 3.f})));
}

using ShardedVariableFiles = data::FilesTest;

TEST_F(ShardedVariableFiles, RestoreIntoAnyNumberOfParts) {
  const Tensor start = at::arange(4, float32);
  const ShardedVariable four = in_parts(start, {1, 1, 1, 1});
  train::Checkpoint saver({{"v", four}});
  const std::string path = saver.save(directory + "/ckpt");
  for (const auto& sizes : {std::vector<int64_t>{4}, {2, 2}, {1, 3}, {3, 1}}) {
    const ShardedVariable other = in_parts(at::zeros({4}), sizes);
    train::Checkpoint restorer({{"v", other}});
    restorer.restore(path).assert_consumed();
    EXPECT_TRUE(at::equal(other.value(), start));
    other.assign(start * 5 + 5);
    const std::string back = restorer.save(directory + "/back");
    const ShardedVariable again = in_parts(at::zeros({4}), {1, 1, 1, 1});
    train::Checkpoint({{"v", again}}).restore(back);
    EXPECT_THAT(part(again, 3), ElementsAre(20));
  }
}

}  // namespace
}  // namespace cohort::distribute
