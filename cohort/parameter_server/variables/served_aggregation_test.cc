// What several replicas of a worker write together to variables on ps tasks.
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/parameter_server/variables/testing_two_shards.h"

namespace cohort::distribute {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using enum VariableAggregation;

class ServedAggregationTest : public ::testing::Test, protected TwoShards {
 protected:
  ServedAggregationTest() : TwoShards(2) {}

  Variable make(const std::string& name, DType dtype, VariableAggregation aggregation) const {
    const auto scope = strategy_.scope();
    return Variable(at::zeros({4, 2}, dtype), {.name = name, .aggregation = aggregation});
  }
  // What a step throws in which replica r calls write(r).
  std::string refused_step(const std::function<void(int)>& write) const {
    return thrown<InvalidArgumentError>([&] { step(write); });
  }
  void step(const std::function<void(int)>& write) const {
    strategy_.run([&](ReplicaContext& replica) { write(replica.replica_id_in_sync_group()); });
  }
  static Tensor all(double value, DType dtype = float32) { return at::full({4, 2}, value, dtype); }
  static IndexedSlices row(double value, DType dtype = float32) {
    return {.values = at::full({1, 2}, value, dtype), .indices = at_rows({1})};
  }
};

TEST_F(ServedAggregationTest, ReplicasThatWriteDifferentlyAreNamed) {
  const Variable v = make("v", float32, SUM), w = make("w", float32, SUM);
  const std::vector<Variable> shards = v.shards();
  const auto differ = [&](const std::function<void(int)>& write) {
    const std::string what = thrown<FailedPreconditionError>([&] { step(write); });
    EXPECT_THAT(what, AllOf(HasSubstr("while another calls"),
                            HasSubstr("every replica must make the same calls in one order")));
    return what;
  };
  EXPECT_THAT(differ([&](int r) { (r == 0 ? v : w).assign_add(all(r == 0 ? 1 : 10)); }),
              AllOf(HasSubstr("'v'"), HasSubstr("'w'")));
  differ([&](int r) { r == 0 ? v.assign_add(all(1)) : v.assign_sub(all(1)); });
  EXPECT_THAT(differ([&](int r) { (r == 0 ? v : w).scatter_add(row(1)); }),
              AllOf(HasSubstr("scatter_add"), HasSubstr("'v'"), HasSubstr("'w'")));
  differ([&](int r) { r == 0 ? v.scatter_add(row(1)) : v.scatter_sub(row(1)); });
  EXPECT_THAT(differ([&](int r) {
                shards[static_cast<size_t>(r)].assign(at::ones({2, 2}));
              }),
              AllOf(HasSubstr("'v/part_0'"), HasSubstr("'v/part_1'")));
  EXPECT_TRUE(at::equal(v.value(), all(0)));
  EXPECT_TRUE(at::equal(w.value(), all(0)));

  step([&](int r) { v.assign_add(all(r + 1)); });
  EXPECT_TRUE(at::equal(v.value(), all(3)));
  step([&](int) { v.shards()[1].assign_add(at::ones({2, 2})); });
  EXPECT_TRUE(at::equal(v.value().slice(0, 0, 2), all(3).slice(0, 0, 2)));
  EXPECT_TRUE(at::equal(v.value().slice(0, 2, 4), all(5).slice(0, 0, 2)));
}

TEST_F(ServedAggregationTest, IntegersHaveNoMean) {
  const Variable v = make("v", int32, MEAN);
  const auto no_mean = AllOf(HasSubstr("'v'"), HasSubstr("has no MEAN over replicas"));
  EXPECT_THAT(refused_step([&](int r) { v.assign(all(r + 1, int32)); }), no_mean);
  EXPECT_THAT(refused_step([&](int r) { v.scatter_add(row(r + 1, int32)); }), no_mean);
  EXPECT_TRUE(at::equal(v.value(), all(0, int32)));
}

TEST_F(ServedAggregationTest, SumsDoNotWrap) {
  const Variable v = make("v", DType(at::kByte), SUM);
  EXPECT_THAT(refused_step([&](int) { v.assign(all(200, at::kByte)); }),
              AllOf(HasSubstr("'v'"), HasSubstr("gives 400")));
  step([&](int) { v.assign(all(100, at::kByte)); });
  EXPECT_TRUE(at::equal(v.value(), all(200, at::kByte)));
}

TEST_F(ServedAggregationTest, TruthsHaveNoSumAndTakeNoArithmetic) {
  const Variable v = make("v", boolean, SUM);
  EXPECT_THAT(refused_step([&](int) { v.assign(all(1, boolean)); }), HasSubstr("'v' is bool"));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { v.assign_sub(all(1, boolean)); }),
              HasSubstr("assign_sub of variable 'v'"));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { v.scatter_div(row(1, boolean)); }),
              HasSubstr("scatter_div of variable 'v'"));
  const auto scope = strategy_.scope();
  EXPECT_THAT(thrown<InvalidArgumentError>(
                  [&] { const Variable sparse(all(1).to_sparse(), {.name = "s"}); }),
              HasSubstr("variable 's'"));
}

}  // namespace
}  // namespace cohort::distribute
