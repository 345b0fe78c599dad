#include "cohort/distribute/strategies/replica_context.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "cohort/core/testing_errors.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/distribute/testing_numbers.h"
#include "cohort/distribute/testing_tasks.h"
#include "cohort/ops/gradient_tape.h"

namespace cohort::distribute {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

double id_of(const ReplicaContext& context) { return context.replica_id_in_sync_group(); }

TEST(MergeCall, RegroupsArgumentsAndSlicesResults) {
  const MirroredStrategy strategy = mirrored(3);
  int calls = 0;
  const auto doubled = strategy.run([&](ReplicaContext& context) {
    return context.merge_call(
        [&](Strategy& merged, const PerReplica<Tensor>& xs, const PerReplica<int>& factors) {
          ++calls;
          EXPECT_EQ(merged.num_replicas_in_sync(), 3);
          PerReplica<Tensor>::Values results;
          for (size_t i = 0; i < xs.size(); ++i) results.push_back(xs.value(i) * factors.value(i));
          return PerReplica<Tensor>(std::move(results));
        },
        number(id_of(context)), 10);
  });
  EXPECT_EQ(calls, 1);
  EXPECT_THAT(values(doubled), ElementsAre(0, 10, 20));
}

TEST(MergeCall, APlainResultGoesToEveryReplica) {
  const MirroredStrategy strategy = mirrored(2);
  const auto sums = strategy.run([&](ReplicaContext& context) {
    return context.merge_call(
        [](Strategy& merged, const PerReplica<Tensor>& xs) {
          return merged.reduce(ReduceOp::SUM, xs);
        },
        number(id_of(context) + 1));
  });
  EXPECT_THAT(values(sums), ElementsAre(3, 3));
}

TEST(MergeCall, AVariableArrivesAsItself) {
  const MirroredStrategy strategy = mirrored(2);
  auto scope = strategy.scope();
  const Variable v(number(1));
  strategy.run([&](ReplicaContext& context) {
    context.merge_call([](Strategy&, const Variable& merged) { merged.assign(4); }, v);
  });
  EXPECT_THAT(values(v.components()), ElementsAre(4, 4));
}

TEST(MergeCall, AnErrorReachesTheCallerOnce) {
  const MirroredStrategy strategy = mirrored(2);
  EXPECT_THROW(strategy.run([](ReplicaContext& context) {
    context.merge_call([](Strategy&) { throw ResourceExhaustedError("full"); });
  }),
               ResourceExhaustedError);
}

TEST(AllReduce, SumsAndAverages) {
  const MirroredStrategy strategy = mirrored(2);
  const auto sums = strategy.run([](ReplicaContext& context) {
    return context.all_reduce(ReduceOp::SUM, number(id_of(context)));
  });
  EXPECT_THAT(values(sums), ElementsAre(1, 1));
  const auto means = strategy.run(
      [](ReplicaContext& context) { return context.all_reduce("MEAN", number(id_of(context))); });
  EXPECT_THAT(values(means), ElementsAre(0.5, 0.5));
  EXPECT_THROW(strategy.run([](ReplicaContext& context) { context.all_reduce("MAX", number(1)); }),
               InvalidArgumentError);
}

TEST(AllReduce, MeanOfIntegersDividesTruly) {
  const MirroredStrategy strategy = mirrored(2);
  for (const DType dtype : {at::kInt, at::kLong}) {
    const auto means = strategy.run([&](ReplicaContext& context) {
      return context.all_reduce(ReduceOp::MEAN, at::full({}, id_of(context), dtype));
    });
    EXPECT_EQ(means.value(0).scalar_type(), at::kDouble);
    EXPECT_THAT(values(means), ElementsAre(0.5, 0.5));
  }
}

TEST(AllReduce, TakesSparseGradientsAsReduceDoes) {
  const MirroredStrategy strategy = mirrored(2);
  const auto gradient = [](int64_t replica) {  // rows 0 and replica + 1, row 0 twice
    return at::sparse_coo_tensor(at::arange(0, 3).remainder(2).mul(replica + 1).reshape({1, 3}),
                                 at::full({3, 2}, replica + 1, at::kDouble), {4, 2});
  };
  const Tensor expected = gradient(0).to_dense() + gradient(1).to_dense();
  const auto sums = strategy.run([&](ReplicaContext& context) {
    return context.all_reduce(ReduceOp::SUM, gradient(context.replica_id_in_sync_group()));
  });
  const auto means = strategy.run([&](ReplicaContext& context) {
    return context.all_reduce(ReduceOp::MEAN, gradient(context.replica_id_in_sync_group()));
  });
  for (int replica = 0; replica < 2; ++replica) {
    EXPECT_TRUE(sums.value(replica).is_sparse());
    EXPECT_TRUE(sums.value(replica).to_dense().equal(expected));
    EXPECT_TRUE(means.value(replica).to_dense().equal(expected / 2));
  }
  EXPECT_FALSE(sums.value(0)._values().is_same(sums.value(1)._values()));
  EXPECT_TRUE(strategy.reduce(ReduceOp::SUM, PerReplica<Tensor>({gradient(0), gradient(1)}))
                  .to_dense()
                  .equal(expected));
  EXPECT_THROW(strategy.run([&](ReplicaContext& context) {
    const Tensor mine = gradient(0);
    const bool dense = context.replica_id_in_sync_group() == 1;
    context.all_reduce(ReduceOp::SUM, dense ? mine.to_dense() : mine);
  }),
               FailedPreconditionError);
}

// As vars_test's testAllReduce: the components added up.
TEST(AllReduce, OfAVariableIsThatOfWhatTheReplicasRead) {
  const MirroredStrategy strategy = mirrored(2);
  auto scope = strategy.scope();
  const Variable v(number(2));
  const Variable own(number(0), {.synchronization = VariableSynchronization::ON_READ,
                                 .aggregation = VariableAggregation::SUM});
  scope.close();
  const auto sums = strategy.run([&](ReplicaContext& context) {
    own.assign_add(id_of(context) + 1);
    EXPECT_EQ(context.all_reduce(ReduceOp::MEAN, own).item<double>(), 1.5);
    return context.all_reduce("SUM", v) + id_of(context);
  });
  EXPECT_THAT(values(sums), ElementsAre(4, 5));
}

TEST(AllReduce, TakesStructures) {
  const MirroredStrategy strategy = mirrored(2);
  const auto lists = strategy.run([](ReplicaContext& context) {
    return context.all_reduce(ReduceOp::SUM, tuple(number(1), number(2)));
  });
  for (const Structure& list : lists.values()) {
    EXPECT_EQ(list[0].tensor().item<double>(), 2);
    EXPECT_EQ(list[1].tensor().item<double>(), 4);
  }
}

TEST(AllReduce, ItsGradientIsTheSameAllReduce) {
  const MirroredStrategy strategy = mirrored(2);
  const auto gradients = strategy.run([](ReplicaContext& context) {
    const Tensor x = number(id_of(context) + 1).set_requires_grad(true);
    GradientTape tape;
    // Each replica weighs the sum differently: the gradient of x is the sum of the weights.
    const Tensor loss = context.all_reduce(ReduceOp::SUM, x * x) * (id_of(context) + 1);
    return tape.gradient(loss, x);
  });
  EXPECT_THAT(values(gradients), ElementsAre(2 * 1 * 3, 2 * 2 * 3));
}

TEST(AllReduce, RefusesWhatDiffersAndKeepsTheStrategyUsable) {
  const MirroredStrategy strategy = mirrored(2);
  EXPECT_THROW(strategy.run([](ReplicaContext& context) {
    context.all_reduce(ReduceOp::SUM, at::ones({context.replica_id_in_sync_group() + 1}));
  }),
               InvalidArgumentError);
  // As TensorFlow's.
  for (const DType dtype : {at::kBool, at::kByte, at::kChar, at::kShort}) {
    EXPECT_THROW(strategy.run([&](ReplicaContext& context) {
      context.all_reduce(ReduceOp::SUM, at::ones({}, dtype));
    }),
                 InvalidArgumentError)
        << dtype;
  }
  EXPECT_EQ(strategy.run([](ReplicaContext& context) { return id_of(context); }).value(1), 1);
}

TEST(AllReduce, AndMergeCallAtOnceAreNamed) {
  const MirroredStrategy strategy = mirrored(2);
  try {
    strategy.run([](ReplicaContext& context) {
      if (context.replica_id_in_sync_group() == 0) {
        context.all_reduce(ReduceOp::SUM, number(1));
      } else {
        context.merge_call([](Strategy&) {});
      }
    });
    FAIL() << "met";
  } catch (const FailedPreconditionError& error) {
    EXPECT_THAT(error.what(), HasSubstr("replica 0 in all_reduce SUM, replica 1 in merge_call"));
  }
}

TEST(AllGather, JoinsAndHasAGradient) {
  const MirroredStrategy strategy = mirrored(2);
  const auto gathered = strategy.run([](ReplicaContext& context) {
    return context.all_gather(at::full({context.replica_id_in_sync_group() + 1}, id_of(context)),
                              0);
  });
  for (const Tensor& rows : gathered.values()) EXPECT_EQ(rows.sum().item<double>(), 2);

  const auto gradients = strategy.run([](ReplicaContext& context) {
    const Tensor x =
        at::ones({context.replica_id_in_sync_group() + 1}, at::kDouble).set_requires_grad(true);
    GradientTape tape;
    const Tensor weights = at::arange(1, 4, at::kDouble) * (id_of(context) + 1);
    return tape.gradient((context.all_gather(x, 0) * weights).sum(), x);
  });
  EXPECT_TRUE(at::equal(gradients.value(0), at::full({1}, 3.0, at::kDouble)));
  EXPECT_EQ(gradients.value(1).sum().item<double>(), 3 * (2 + 3));
}

TEST(Broadcast, GivesEveryReplicaTheValueOfOne) {
  const MirroredStrategy strategy = mirrored(3);
  for (const int source : {0, 2}) {
    const auto sent = strategy.run([&](ReplicaContext& context) {
      return context.broadcast(number(id_of(context) + 0.5), source);
    });
    EXPECT_THAT(values(sent), ElementsAre(source + 0.5, source + 0.5, source + 0.5));
  }
}

TEST(Broadcast, SendsBetweenTasks) {
  run_all_tasks(2, 2, [](const Strategy& strategy, int) {
    for (int source = 0; source < 4; ++source) {
      const auto sent = strategy.run([&](ReplicaContext& context) {
        return context.broadcast(at::full({3}, context.replica_id_in_sync_group(), uint8), source);
      });
      for (const Tensor& one : sent.values()) {
        EXPECT_TRUE(at::equal(one, at::full({3}, source, uint8)));
      }
    }
  });
}

TEST(Broadcast, ItsGradientIsTheSumForTheSource) {
  const MirroredStrategy strategy = mirrored(3);
  const auto gradients = strategy.run([](ReplicaContext& context) {
    const Tensor x = number(2).requires_grad_();
    GradientTape tape;
    const Tensor loss = context.broadcast(x, 1) * (id_of(context) + 1);
    return tape.gradient(loss, std::vector<Tensor>{x})[0];
  });
  EXPECT_THAT(values(gradients), ElementsAre(0, 6, 0));
}

TEST(Broadcast, RefusesWhatDiffers) {
  const MirroredStrategy strategy = mirrored(2);
  const auto refused = [&](auto step) {
    return thrown<InvalidArgumentError>([&] { strategy.run(step); });
  };
  EXPECT_THAT(refused([](ReplicaContext& context) {
                context.broadcast(at::ones({context.replica_id_in_sync_group() + 1}));
              }),
              HasSubstr("[2]"));
  EXPECT_THAT(refused([](ReplicaContext& context) {
                context.broadcast(number(1), context.replica_id_in_sync_group());
              }),
              HasSubstr("replica 0"));
  EXPECT_THAT(refused([](ReplicaContext& context) { context.broadcast(number(1), 2); }),
              HasSubstr("there are 2 replicas"));
  EXPECT_THAT(refused([](ReplicaContext& context) { context.broadcast(Tensor()); }),
              HasSubstr("undefined"));
}

TEST(AllReduce, OfTheSumAndTheMeanAtOnceAreNamed) {
  const MirroredStrategy strategy = mirrored(2);
  EXPECT_THROW(strategy.run([](ReplicaContext& context) {
    context.all_reduce(context.replica_id_in_sync_group() == 0 ? ReduceOp::SUM : ReduceOp::MEAN,
                       number(1));
  }),
               FailedPreconditionError);
}

TEST(MergeCall, OfOtherTypesOnAnotherReplicaIsRefused) {
  const MirroredStrategy strategy = mirrored(2);
  for (int i = 0; i < 20; ++i) {  // whoever comes last checks
    EXPECT_THROW(strategy.run([](ReplicaContext& context) {
      if (context.replica_id_in_sync_group() == 0) {
        context.merge_call([](Strategy&, const PerReplica<Tensor>& x) { return x; }, number(1));
      } else {
        context.merge_call([](Strategy&, const PerReplica<int>&) {}, 3);
      }
    }),
                 FailedPreconditionError);
  }
}

TEST(AllGather, AlongDifferentAxesIsRefused) {
  const MirroredStrategy strategy = mirrored(2);
  EXPECT_THROW(strategy.run([](ReplicaContext& context) {
    context.all_gather(at::ones({2, 2}), context.replica_id_in_sync_group());
  }),
               InvalidArgumentError);
}

TEST(AllGather, OnOneReplicaAndOfRankZero) {
  const MirroredStrategy strategy = mirrored(1);
  EXPECT_EQ(
      strategy.run([](ReplicaContext& context) { return context.all_gather(at::ones({3}), 0); })
          .item()
          .numel(),
      3);
  EXPECT_THROW(strategy.run([](ReplicaContext& context) { context.all_gather(number(1), 0); }),
               InvalidArgumentError);
}

TEST(ReplicaContext, OfAnotherThreadIsRefused) {
  const MirroredStrategy strategy = mirrored(2);
  std::atomic<ReplicaContext*> first{nullptr};
  EXPECT_THROW(strategy.run([&](ReplicaContext& context) {
    if (context.replica_id_in_sync_group() == 0) {
      first = &context;
      context.merge_call([](Strategy&) {});
    } else {
      while (first == nullptr) std::this_thread::yield();
      first.load()->merge_call([](Strategy&) {});
    }
  }),
               FailedPreconditionError);
}

}  // namespace
}  // namespace cohort::distribute
