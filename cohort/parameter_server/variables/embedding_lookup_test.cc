#include "cohort/parameter_server/variables/embedding_lookup.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"
#include "cohort/ops/gradient_tape.h"

namespace cohort::nn {
namespace {

using distribute::ShardedVariable;
using distribute::Variable;
using ::testing::HasSubstr;

Tensor ids_of(std::vector<int64_t> ids) { return at::tensor(ids, int64); }
Tensor floats(std::vector<float> values, std::vector<int64_t> shape) {
  return at::tensor(values).reshape(shape);
}

// [1, 2], [3, 4] | [5, 6], [7, 8] | [9, 10]
ShardedVariable table() {
  return ShardedVariable({Variable({{1., 2.}, {3., 4.}}, {.name = "p0"}),
                          Variable({{5., 6.}, {7., 8.}}, {.name = "p1"}),
                          Variable(floats({9, 10}, {1, 2}), {.name = "p2"})},
                         "table");
}

// TensorFlow's example: {0, 3}, {4}, {1}.
Tensor coo(const std::vector<int64_t>& rows, const std::vector<int64_t>& places,
           const Tensor& values, std::vector<int64_t> shape = {3, 2}) {
  return at::sparse_coo_tensor(at::stack({ids_of(rows), ids_of(places)}), values, shape);
}
Tensor example() { return coo({0, 0, 1, 2}, {0, 1, 0, 0}, ids_of({0, 3, 4, 1})); }

TEST(EmbeddingLookup, ReadsRowsOfAnyKindOfTable) {
  const ShardedVariable sharded = table();
  const Tensor expected = floats({1, 2, 7, 8, 9, 10}, {3, 2});
  EXPECT_TRUE(at::equal(embedding_lookup(sharded, ids_of({0, 3, 4})), expected));
  EXPECT_TRUE(at::equal(embedding_lookup(sharded.variables(), ids_of({0, 3, 4})), expected));
  EXPECT_TRUE(at::equal(embedding_lookup(sharded.value(), ids_of({0, 3, 4})), expected));
  const Variable plain(sharded.value().detach());
  EXPECT_TRUE(at::equal(embedding_lookup(plain, ids_of({0, 3, 4}).to(int32)), expected));
  const Tensor square = embedding_lookup(sharded, ids_of({0, 1, 4, 4}).reshape({2, 2}));
  EXPECT_TRUE(at::equal(square, floats({1, 2, 3, 4, 9, 10, 9, 10}, {2, 2, 2})));
  EXPECT_EQ(embedding_lookup(sharded, ids_of({}).reshape({0, 3})).sizes(),
            at::IntArrayRef({0, 3, 2}));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                embedding_lookup(sharded, ids_of({1, 5}));
              }),
              HasSubstr("'table': the index 5 at place 1"));
  EXPECT_THROW(embedding_lookup(sharded, ids_of({-1})), InvalidArgumentError);
  EXPECT_THROW(embedding_lookup(sharded, at::ones({1})), InvalidArgumentError);
}

TEST(EmbeddingLookup, ScalesLongRows) {
  const Tensor found = embedding_lookup(table(), ids_of({0, 1}), {.max_norm = 2.5});
  EXPECT_TRUE(at::allclose(found, floats({1, 2, 1.5, 2}, {2, 2})));
  EXPECT_THROW(embedding_lookup(table(), ids_of({0}), {.max_norm = 0}), InvalidArgumentError);
}

TEST(EmbeddingLookupSparse, CombinesTheRowsOfEachExample) {
  EXPECT_TRUE(
      at::equal(embedding_lookup_sparse(table(), example()), floats({4, 5, 9, 10, 3, 4}, {3, 2})));
  EXPECT_TRUE(
      at::equal(embedding_lookup_sparse(table(), example(), std::nullopt, {.combiner = "sum"}),
                floats({8, 10, 9, 10, 3, 4}, {3, 2})));
  const auto ragged = RaggedTensor::from_row_lengths(ids_of({0, 3, 4, 1}), {2, 0, 1, 1});
  EXPECT_TRUE(at::equal(embedding_lookup_sparse(table(), ragged),
                        floats({4, 5, 0, 0, 9, 10, 3, 4}, {4, 2})));
}

// As TensorFlow's, whose segments end with the last one that has a member.
TEST(EmbeddingLookupSparse, EndsWithTheLastRowThatHasIds) {
  const auto ragged = RaggedTensor::from_row_lengths(ids_of({3, 4}), {0, 1, 0, 1, 0, 0});
  const Tensor expected = floats({0, 0, 7, 8, 0, 0, 9, 10}, {4, 2});
  for (const char* combiner : {"sum", "mean", "sqrtn"}) {
    EXPECT_TRUE(at::equal(
        embedding_lookup_sparse(table(), ragged, std::nullopt, {.combiner = combiner}), expected));
  }
  const auto weights = RaggedTensor::from_row_lengths(at::ones({2}), {0, 1, 0, 1, 0, 0});
  EXPECT_TRUE(at::equal(embedding_lookup_sparse(table(), ragged, weights), expected));
  const auto none = RaggedTensor::from_row_lengths(ids_of({}), {0, 0});
  EXPECT_EQ(embedding_lookup_sparse(table(), none).sizes(), at::IntArrayRef({0, 2}));
  EXPECT_TRUE(at::equal(safe_embedding_lookup_sparse(table(), none), at::zeros({2, 2})));
}

TEST(EmbeddingLookupSparse, WeighsThem) {
  const Tensor weights = coo({0, 0, 1, 2}, {0, 1, 0, 0}, at::tensor({1.f, 3.f, 2.f, 0.f}));
  const auto with = [&](const char* combiner) {
    return embedding_lookup_sparse(table(), example(), weights, {.combiner = combiner});
  };
  EXPECT_TRUE(at::allclose(with("sum"), floats({22, 26, 18, 20, 0, 0}, {3, 2})));
  EXPECT_TRUE(at::allclose(with("mean"), floats({5.5, 6.5, 9, 10, 0, 0}, {3, 2})));
  const auto root = static_cast<float>(std::sqrt(10.));
  EXPECT_TRUE(at::allclose(with("sqrtn"), floats({22 / root, 26 / root, 9, 10, 0, 0}, {3, 2})));
  const Tensor elsewhere = coo({0, 0, 1, 1}, {0, 1, 0, 1}, at::ones({4}));
  EXPECT_THAT(
      thrown<InvalidArgumentError>([&] { embedding_lookup_sparse(table(), example(), elsewhere); }),
      HasSubstr("weights"));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { with("max"); }), HasSubstr("sum, mean, sqrtn"));
  EXPECT_THROW(embedding_lookup_sparse(table(), at::zeros({2, 2})), InvalidArgumentError);
}

TEST(SafeEmbeddingLookupSparse, LeavesOutWhatIsFaulty) {
  const Tensor ids = coo({0, 0, 1, 2}, {0, 1, 0, 0}, ids_of({0, -1, 4, 1}));
  const Tensor weights = coo({0, 0, 1, 2}, {0, 1, 0, 0}, at::tensor({1.f, 1.f, -1.f, 1.f}));
  EXPECT_TRUE(at::equal(safe_embedding_lookup_sparse(table(), ids, weights),
                        floats({1, 2, 0, 0, 3, 4}, {3, 2})));
  EXPECT_TRUE(at::equal(safe_embedding_lookup_sparse(table(), ids, weights, {.default_id = 3}),
                        floats({1, 2, 7, 8, 3, 4}, {3, 2})));
  EXPECT_TRUE(at::equal(safe_embedding_lookup_sparse(table(), ids, weights, {.combiner = "sum"}),
                        floats({1, 2, -9, -10, 3, 4}, {3, 2})));
  const Tensor cube =
      at::sparse_coo_tensor(at::stack({ids_of({0, 1, 1}), ids_of({1, 0, 0}), ids_of({0, 0, 1})}),
                            ids_of({2, 0, 1}), {2, 2, 2});
  const Tensor found = safe_embedding_lookup_sparse(table(), cube);
  EXPECT_TRUE(at::equal(found, floats({0, 0, 5, 6, 2, 3, 0, 0}, {2, 2, 2})));
}

TEST(EmbeddingLookupSparse, HasTheGradientOfItsRowsAlone) {
  const ShardedVariable sharded = table();
  GradientTape tape;
  const Tensor loss = embedding_lookup_sparse(sharded, example()).sum();
  const auto gradients = tape.gradient(loss, sharded.variables());
  ASSERT_EQ(gradients.size(), 3u);
  for (const Tensor& gradient : gradients) EXPECT_EQ(gradient.layout(), at::kSparse);
  EXPECT_TRUE(at::equal(gradients[0].to_dense(), floats({0.5, 0.5, 1, 1}, {2, 2})));
  EXPECT_TRUE(at::equal(gradients[1].to_dense(), floats({0, 0, 0.5, 0.5}, {2, 2})));
  EXPECT_TRUE(at::equal(gradients[2].to_dense(), floats({1, 1}, {1, 2})));
}

// As TensorFlow's: that of the sum is what is looked up.
TEST(EmbeddingLookupSparse, HasTheGradientOfItsWeights) {
  const auto gradient_of = [](const char* combiner, bool is_ragged, bool is_coalesced) {
    Tensor numbers = floats({1, 3, 2, 0}, {4});
    numbers.set_requires_grad(true);
    const auto lengths = std::vector<int64_t>{2, 1, 1};
    const auto weights = [&]() -> SparseValues {
      if (is_ragged) return RaggedTensor::from_row_lengths(numbers, lengths);
      const Tensor sparse = coo({0, 0, 1, 2}, {0, 1, 0, 0}, numbers);
      return is_coalesced ? sparse.coalesce() : sparse;
    };
    const auto ids = RaggedTensor::from_row_lengths(ids_of({0, 3, 4, 1}), lengths);
    const Tensor found = embedding_lookup_sparse(table(), ids, weights(), {.combiner = combiner});
    found.sum().backward();
    return numbers.grad().clone();
  };
  for (const bool is_ragged : {true, false}) {
    for (const bool is_coalesced : {true, false}) {
      const auto expect = [&](const char* combiner, const Tensor& expected) {
        const Tensor gradient = gradient_of(combiner, is_ragged, is_coalesced);
        EXPECT_TRUE(at::allclose(gradient, expected, 1e-4, 1e-4)) << combiner << gradient;
      };
      // Rows sum to 3, 15, 19, 7; (3 + 3 * 15) / 4 = 12.
      expect("sum", floats({3, 15, 19, 7}, {4}));
      expect("mean", floats({(3 - 12) / 4.f, (15 - 12) / 4.f, 0, 0}, {4}));
      const auto root = static_cast<float>(std::sqrt(10.));
      expect("sqrtn", floats({(3 - 4.8f) / root, (15 - 3 * 4.8f) / root, 0, 0}, {4}));
    }
  }
}

// As TensorFlow's: in float32, which is rounded at the end.
TEST(EmbeddingLookupSparse, AddsUpNarrowTablesInFloat32) {
  constexpr int64_t kCount = 5000;
  const auto ids = RaggedTensor::from_row_lengths(at::zeros({kCount}, int64), {kCount});
  const auto weights = RaggedTensor::from_row_lengths(at::ones({kCount}), {kCount});
  for (const DType dtype : {at::kHalf, at::kBFloat16}) {
    const distribute::Variable narrow(at::ones({2, 1}, dtype));
    for (const bool is_weighted : {false, true}) {
      const auto given = is_weighted ? std::optional<SparseValues>(weights) : std::nullopt;
      const auto with = [&](const char* combiner) {
        const Tensor found = embedding_lookup_sparse(narrow, ids, given, {.combiner = combiner});
        EXPECT_EQ(found.scalar_type(), dtype);
        return found.to(float32).item<float>();
      };
      EXPECT_NEAR(with("sum"), kCount, 16);
      EXPECT_EQ(with("mean"), 1);
      EXPECT_NEAR(with("sqrtn"), std::sqrt(kCount), 0.3);
    }
  }
}

}  // namespace
}  // namespace cohort::nn
