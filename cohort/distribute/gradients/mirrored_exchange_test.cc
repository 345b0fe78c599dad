#include "cohort/distribute/gradients/mirrored_exchange.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/util/accumulate.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "cohort/core/cpu/intra_op_threads.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/strategies/strategy.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/ops/random.h"
#include "cohort/optim/adam.h"
#include "cohort/optim/sgd.h"

namespace cohort::distribute {
namespace {

using internal::Arrival;
using internal::GradientExchange;
using internal::UpdateTarget;
using ::testing::HasSubstr;

struct Case {
  int replicas;
  bool shared_storage;
};

struct StepOptions {
  double learning_rate = 0;
  int64_t iteration = 0;
  bool aggregate_gradients = true;
  double global_clipnorm = 0;
  bool skip_not_finite = false;
};

// One exchange for each list of targets, made by the first replica that comes.
class Exchanges {
 public:
  // One whole step of a replica.
  internal::UpdateResult operator()(ReplicaContext& context, const std::vector<Tensor>& gradients,
                                    const std::vector<UpdateTarget>& targets,
                                    const optim::UpdateRule& rule, const StepOptions& options) {
    GradientExchange& exchange = of(context, targets);
    exchange.begin(context, Arrival::kAtOnce);
    for (size_t i = 0; i < gradients.size(); ++i) exchange.bring(context, i, gradients[i]);
    return exchange.finish(context, {.rule = rule,
                                     .learning_rate = options.learning_rate,
                                     .iteration = options.iteration,
                                     .aggregate_gradients = options.aggregate_gradients,
                                     .global_clipnorm = options.global_clipnorm,
                                     .skip_not_finite = options.skip_not_finite});
  }

 private:
  GradientExchange& of(ReplicaContext& context, const std::vector<UpdateTarget>& targets) {
    std::lock_guard lock(mutex_);
    for (const auto& made : made_) {
      const auto same = [](const UpdateTarget& a, const UpdateTarget& b) {
        return a.variable == b.variable;
      };
      if (std::ranges::equal(made->targets(), targets, same)) return *made;
    }
    return *made_.emplace_back(context.core().make_exchange(targets));
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<GradientExchange>> made_;  // guarded by mutex_
};

class MirroredExchangeTest : public ::testing::TestWithParam<Case> {
 protected:
  Variable variable(const Tensor& initial) {
    auto scope = strategy.scope();
    return Variable(initial);
  }
  // A target with the rule's slots.
  UpdateTarget target(const Tensor& initial, const optim::UpdateRule& rule) {
    UpdateTarget made{variable(initial), {}};
    for (const auto& slot : rule.slots()) {
      made.slots.push_back(variable(at::full_like(initial, slot.initial_value)));
    }
    return made;
  }
  void expect_equal_components(const Variable& v) {
    const auto parts = v.components();
    for (const Tensor& part : parts.values()) EXPECT_TRUE(at::equal(part, parts.value(0)));
  }
  MirroredStrategy strategy =
      mirrored(GetParam().replicas, {.shared_storage = GetParam().shared_storage});
  Exchanges exchange;
};
INSTANTIATE_TEST_SUITE_P(Replicas, MirroredExchangeTest,
                         ::testing::Values(Case{1, true}, Case{2, true}, Case{2, false},
                                           Case{3, true}, Case{5, false}));

TEST_P(MirroredExchangeTest, SumsGradientsAndAppliesTheRule) {
  const auto rule = optim::make_sgd({});
  // Sizes that leave slices across variables, and some replicas with nothing.
  const std::vector<UpdateTarget> targets{target(at::ones({3, 7}), *rule),
                                          target(at::ones({1}), *rule),
                                          target(at::ones({5000}), *rule)};
  strategy.run([&](ReplicaContext& context) {
    std::vector<Tensor> gradients;
    for (const auto& one : targets) {
      gradients.push_back(at::full(one.variable.shape(), 1.0 + context.replica_id_in_sync_group()));
    }
    exchange(context, gradients, targets, *rule, {.learning_rate = 0.5});
  });
  const int n = GetParam().replicas;
  const double expected = 1 - 0.5 * n * (n + 1) / 2;
  for (const auto& one : targets) {
    EXPECT_TRUE(
        at::allclose(one.variable.components().value(0), at::full(one.variable.shape(), expected)));
    expect_equal_components(one.variable);
  }
}

TEST_P(MirroredExchangeTest, ManyAdamStepsKeepEveryComponentAndSlotEqual) {
  const auto rule = optim::make_adam({});
  const auto generator = random::RandomGenerator::from_seed(5);
  const std::vector<UpdateTarget> targets{
      target(generator.normal({33, 17}, {.dtype = float64}), *rule)};
  for (int step = 0; step < 20; ++step) {
    const Tensor gradient = generator.normal({33, 17}, {.dtype = float64});
    strategy.run([&](ReplicaContext& context) {
      const std::vector<Tensor> gradients{gradient * (context.replica_id_in_sync_group() + 1)};
      exchange(context, gradients, targets, *rule, {.learning_rate = 0.01, .iteration = step});
    });
    expect_equal_components(targets[0].variable);
    for (const Variable& slot : targets[0].slots) expect_equal_components(slot);
  }
  EXPECT_FALSE(
      at::equal(targets[0].slots[1].components().value(0), at::zeros({33, 17}, at::kDouble)));
}

TEST_P(MirroredExchangeTest, ReplicasWithoutAGradientCountAsZeros) {
  const auto rule = optim::make_sgd({});
  const std::vector<UpdateTarget> targets{target(at::ones({20}), *rule),
                                          target(at::ones({20}), *rule)};
  strategy.run([&](ReplicaContext& context) {
    const bool first = context.replica_id_in_sync_group() == 0;
    const std::vector<Tensor> gradients{first ? at::ones({20}) : Tensor(), Tensor()};
    exchange(context, gradients, targets, *rule, {.learning_rate = 1});
  });
  EXPECT_TRUE(at::equal(targets[0].variable.components().value(0), at::zeros({20})));
  EXPECT_TRUE(at::equal(targets[1].variable.components().value(0), at::ones({20})));
}

TEST_P(MirroredExchangeTest, TakesViewsAndSparseGradients) {
  const auto rule = optim::make_sgd({});
  const std::vector<UpdateTarget> targets{target(at::zeros({4, 3}), *rule),
                                          target(at::zeros({4, 3}), *rule)};
  const Tensor grid = at::arange(12, at::kFloat).reshape({3, 4}).t();
  strategy.run([&](ReplicaContext& context) {
    const std::vector<Tensor> gradients{grid, grid.to_sparse()};
    exchange(context, gradients, targets, *rule, {.learning_rate = 1});
  });
  for (const auto& one : targets) {
    EXPECT_TRUE(at::equal(one.variable.components().value(0), grid * -GetParam().replicas));
  }
}

// Rows drawn by each replica for itself, some of them twice, as an embedding's gradient has them.
Tensor random_rows(at::IntArrayRef shape, int64_t count) {
  const Tensor ids = (random::uniform({count}) * static_cast<double>(shape[0])).to(at::kLong);
  std::vector<int64_t> sizes = shape.vec();
  sizes[0] = count;
  return at::sparse_coo_tensor(ids.reshape({1, count}), random::normal(sizes), shape);
}

TEST_P(MirroredExchangeTest, SparseRowsAreBitwiseTheSameAsDense) {
  const std::vector<std::vector<int64_t>> shapes{{1000, 8}, {37, 3, 5}, {3, 2048}, {5, 3000}};
  for (const auto& shape : shapes) {
    for (const auto& rule :
         {optim::make_sgd({}), optim::make_sgd({.momentum = 0.9}), optim::make_adam({})}) {
      const Tensor start = at::linspace(-1, 1, c10::multiply_integers(shape)).reshape(shape);
      const std::vector<UpdateTarget> sparse{target(start, *rule)}, dense{target(start, *rule)};
      for (int step = 0; step < 3; ++step) {
        strategy.run([&](ReplicaContext& context) {
          const int replica = context.replica_id_in_sync_group();
          // In one step somebody has a dense gradient, in another somebody has none.
          Tensor gradient = random_rows(shape, replica == 1 ? 400 : 7);
          Tensor as_dense =
              at::zeros(shape).index_add(0, gradient._indices()[0], gradient._values());
          if (step == 0) gradient = as_dense.to_sparse(/*sparse_dim=*/1);  // each row once
          if (step == 1 && replica == 1) gradient = as_dense;
          if (step == 2 && replica == 1) gradient = as_dense = Tensor();
          const StepOptions options{.learning_rate = 0.1, .iteration = step};
          exchange(context, std::vector<Tensor>{gradient}, sparse, *rule, options);
          exchange(context, std::vector<Tensor>{as_dense}, dense, *rule, options);
        });
      }
      EXPECT_TRUE(at::equal(sparse[0].variable.components().value(0),
                            dense[0].variable.components().value(0)))
          << rule->name() << " " << internal::shape_str(shape);
      expect_equal_components(sparse[0].variable);
      for (const Variable& slot : sparse[0].slots) expect_equal_components(slot);
    }
  }
}

TEST_P(MirroredExchangeTest, IntraOpThreadsShareTheWorkAndChangeNoBit) {
  const std::vector<int64_t> shape{2011, 96}, rows_shape{30'000, 5};
  for (const auto& rule : {optim::make_sgd({}), optim::make_adam({})}) {
    const auto make_targets = [&] {
      return std::vector<UpdateTarget>{target(at::linspace(-1, 1, 7), *rule),
                                       target(at::ones(shape), *rule),
                                       target(at::ones(rows_shape), *rule)};
    };
    const std::vector<UpdateTarget> alone = make_targets(), shared = make_targets();
    for (int step = 0; step < 2; ++step) {
      strategy.run([&](ReplicaContext& context) {
        const std::vector<Tensor> gradients{random::normal({7}), random::normal(shape),
                                            random_rows(rows_shape, 40'000)};
        const StepOptions options{.learning_rate = 0.1, .iteration = step};
        for (const auto& [threads, targets] : {std::pair(1, &alone), std::pair(3, &shared)}) {
          const internal::ScopedIntraOpThreads intra_op(threads);
          exchange(context, gradients, *targets, *rule, options);
        }
      });
    }
    for (size_t i = 0; i < alone.size(); ++i) {
      EXPECT_TRUE(at::equal(alone[i].variable.components().value(0),
                            shared[i].variable.components().value(0)))
          << rule->name() << " " << i;
      expect_equal_components(shared[i].variable);
      for (const Variable& slot : shared[i].slots) expect_equal_components(slot);
    }
  }
}

TEST_P(MirroredExchangeTest, WithoutAggregationTheFirstReplicasGradientsCount) {
  const auto rule = optim::make_sgd({});
  const std::vector<UpdateTarget> targets{target(at::zeros({40}), *rule)};
  strategy.run([&](ReplicaContext& context) {
    const std::vector<Tensor> gradients{at::full({40}, 1.0 + context.replica_id_in_sync_group())};
    exchange(context, gradients, targets, *rule,
             {.learning_rate = 1, .aggregate_gradients = false});
  });
  EXPECT_TRUE(at::equal(targets[0].variable.components().value(0), at::full({40}, -1.0)));
}

TEST_P(MirroredExchangeTest, AWrongGradientIsNamedAndNothingChanges) {
  const auto rule = optim::make_sgd({});
  const std::vector<UpdateTarget> targets{target(at::ones({4}), *rule)};
  const int last = GetParam().replicas - 1;
  try {
    strategy.run([&](ReplicaContext& context) {
      const bool wrong = context.replica_id_in_sync_group() == last;
      const std::vector<Tensor> gradients{at::ones({wrong ? 5 : 4})};
      exchange(context, gradients, targets, *rule, {.learning_rate = 1});
    });
    FAIL() << "updated";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("'Variable'"));
    EXPECT_THAT(error.what(), HasSubstr(internal::str("on replica ", last, " is float32 [5]")));
  }
  EXPECT_TRUE(at::equal(targets[0].variable.components().value(0), at::ones({4})));
}

TEST_P(MirroredExchangeTest, SumsAreClippedByTheNormOfAllOfThem) {
  const auto rule = optim::make_sgd({});
  const std::vector<UpdateTarget> targets{target(at::zeros({2}), *rule),
                                          target(at::zeros({5000}), *rule),
                                          target(at::zeros({1}), *rule)};
  const double n = GetParam().replicas;
  const auto step = [&](double clipnorm) {
    double norm = 0;
    strategy.run([&](ReplicaContext& context) {
      // Over the replicas 3n and 4n: their norm is 5n.
      const std::vector<Tensor> gradients{at::tensor({3.0f, 0.0f}), Tensor(), at::tensor({4.0f})};
      const auto result = exchange(context, gradients, targets, *rule,
                                   {.learning_rate = 1, .global_clipnorm = clipnorm});
      if (context.replica_id_in_sync_group() == 0) norm = result.global_norm;
    });
    EXPECT_DOUBLE_EQ(norm, 5 * n);
    return -targets[0].variable.components().value(0)[0].item<double>();
  };
  EXPECT_NEAR(step(1), 0.6, 1e-6);            // 3n / 5n
  EXPECT_NEAR(step(100), 0.6 + 3 * n, 1e-5);  // within the norm: as it is
  for (const UpdateTarget& one : targets) expect_equal_components(one.variable);
  EXPECT_TRUE(at::equal(targets[1].variable.value(), at::zeros({5000})));
}

TEST_P(MirroredExchangeTest, AStepWhoseSumsAreNotFiniteIsLeftOutWhereAskedFor) {
  const auto rule = optim::make_adam({});
  const std::vector<UpdateTarget> targets{target(at::ones({3}), *rule)};
  strategy.run([&](ReplicaContext& context) {
    const bool last = context.replica_id_in_sync_group() == GetParam().replicas - 1;
    const std::vector<Tensor> gradients{at::full({3}, last ? std::nan("") : 1.0, float32)};
    const auto result =
        exchange(context, gradients, targets, *rule, {.learning_rate = 1, .skip_not_finite = true});
    EXPECT_FALSE(result.updated);
  });
  EXPECT_TRUE(at::equal(targets[0].variable.value(), at::ones({3})));
  EXPECT_TRUE(at::equal(targets[0].slots[0].value(), at::zeros({3})));
}

TEST(MirroredExchange, ReplicasThatUpdateOtherVariablesAreNamed) {
  const MirroredStrategy strategy = mirrored(2);
  auto scope = strategy.scope();
  const auto rule = optim::make_sgd({});
  const Variable a(at::ones({2}), {.name = "a"}), b(at::ones({2}), {.name = "b"});
  Exchanges exchange;
  try {
    strategy.run([&](ReplicaContext& context) {
      const std::vector<UpdateTarget> targets{
          {context.replica_id_in_sync_group() == 0 ? a : b, {}}};
      const std::vector<Tensor> gradients{at::ones({2})};
      exchange(context, gradients, targets, *rule, {.learning_rate = 1});
    });
    FAIL() << "updated";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("replica 0 updates 'a', replica 1 'b'"));
  }
}

// Equal to the bit whatever the number of threads that share the pass, and from run to run.
TEST(MirroredExchange, TheSameGradientsGiveTheSameBits) {
  const auto rule = optim::make_adam({});
  const auto train = [&](bool shared) {
    const MirroredStrategy strategy = mirrored(4, {.shared_storage = shared});
    auto scope = strategy.scope();
    const auto generator = random::RandomGenerator::from_seed(11);
    const Tensor initial = generator.normal({777});
    const std::vector<UpdateTarget> targets{
        {Variable(initial), {Variable(at::zeros({777})), Variable(at::zeros({777}))}}};
    scope.close();
    Exchanges exchange;
    for (int step = 0; step < 5; ++step) {
      std::vector<Tensor> gradients;
      for (int r = 0; r < 4; ++r) gradients.push_back(generator.normal({777}));
      strategy.run([&](ReplicaContext& context) {
        const std::vector<Tensor> mine{gradients[context.replica_id_in_sync_group()]};
        exchange(context, mine, targets, *rule, {.learning_rate = 0.1, .iteration = step});
      });
    }
    return targets[0].variable.components().value(3);
  };
  const Tensor first = train(true);
  EXPECT_TRUE(at::equal(first, train(true)));
  EXPECT_TRUE(at::equal(first, train(false)));
}

}  // namespace
}  // namespace cohort::distribute
