// What a step sees of what its optimizer does: as on one device.
#include <ATen/ops/arange.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cohort/distribute/gradients/gradient_exchange.h"
#include "cohort/distribute/strategies/one_device_strategy.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/optim/adagrad.h"
#include "cohort/optim/adam.h"
#include "cohort/optim/sgd.h"
#include "cohort/parameter_server/cluster_coordinator.h"
#include "cohort/parameter_server/variables/testing_two_shards.h"

namespace cohort::distribute {
namespace {

using coordinator::ClusterCoordinator;

std::unique_ptr<const optim::UpdateRule> rule_of(const std::string& name) {
  if (name == "sgd") return optim::make_sgd({});
  if (name == "adagrad") return optim::make_adagrad({});
  return optim::make_adam({});
}

// A table with slots, and a step's updates of it.
struct Trained {
  Trained(const Strategy& strategy, const std::string& rule_name) : rule(rule_of(rule_name)) {
    const auto scope = strategy.scope();
    table = Variable(at::arange(10, float32).reshape({5, 2}), {.name = "table"});
    for (const optim::SlotSpec& slot : rule->slots()) {
      slots.emplace_back(at::full({5, 2}, static_cast<float>(slot.initial_value)),
                         VariableOptions{.name = slot.name, .trainable = false});
    }
    exchange = strategy.core()->make_exchange({{table, slots}});
  }

  Tensor all() const { return table.value().detach().clone(); }
  Tensor rows(std::vector<int64_t> ids) const {
    return table.sparse_read(at_rows(std::move(ids))).detach().clone();
  }
  void update(ReplicaContext& replica, bool by_rows) { update(replica, by_rows, iteration++); }
  void update(ReplicaContext& replica, bool by_rows, int64_t at) {
    GradientTape tape;
    const Tensor x = by_rows ? table.sparse_read(at_rows({1, 4})) : table.value();
    exchange->backward(replica, (x * x).sum(), tape);
    exchange->finish(replica, {.rule = *rule, .learning_rate = 0.125, .iteration = at});
  }

  std::unique_ptr<const optim::UpdateRule> rule;
  Variable table;
  std::vector<Variable> slots;
  std::shared_ptr<internal::GradientExchange> exchange;
  int64_t iteration = 0;
};

using Step = std::function<Tensor(Trained&, ReplicaContext&)>;

class ServedOwnUpdates : public ::testing::Test, protected TwoShards {
 protected:
  explicit ServedOwnUpdates(int replicas_of_worker = 1) : TwoShards(replicas_of_worker) {}
  // Two steps, on one device and on ps tasks.
  void expect_as_on_one_device(const std::string& rule, const Step& step) {
    const OneDeviceStrategy one_device("CPU:0");
    Trained local(one_device, rule), served(strategy_, rule);
    const ClusterCoordinator coordinator(strategy_);
    for (int i = 0; i < 2; ++i) {
      const Tensor expected =
          one_device.run([&](ReplicaContext& replica) { return step(local, replica); }).value(0);
      const Tensor seen =
          coordinator
              .schedule([&] {
                return strategy_.run([&](ReplicaContext& r) { return step(served, r); }).value(0);
              })
              .fetch()
              .tensor();
      EXPECT_TRUE(at::equal(seen, expected)) << rule << '\n' << seen << expected;
    }
    EXPECT_TRUE(at::equal(served.all(), local.all())) << rule << '\n'
                                                      << served.all() << local.all();
    for (size_t i = 0; i < local.slots.size(); ++i) {
      EXPECT_TRUE(at::equal(served.slots[i].value(), local.slots[i].value())) << rule << i;
    }
  }
  void expect_as_on_one_device(const std::function<Tensor(Trained&, ReplicaContext&, bool)>& step) {
    for (const char* rule : {"sgd", "adagrad", "adam"}) {
      for (const bool by_rows : {false, true}) {
        SCOPED_TRACE(by_rows ? "by rows" : "whole");
        expect_as_on_one_device(rule, [&](Trained& trained, ReplicaContext& replica) {
          return step(trained, replica, by_rows);
        });
      }
    }
  }
};

TEST_F(ServedOwnUpdates, AreInWhatItReads) {
  expect_as_on_one_device([](Trained& of, ReplicaContext& replica, bool by_rows) {
    of.update(replica, by_rows);
    return of.all();
  });
  expect_as_on_one_device([](Trained& of, ReplicaContext& replica, bool by_rows) {
    of.update(replica, by_rows);
    return of.rows({0, 1, 3, 4});
  });
}

TEST_F(ServedOwnUpdates, AreInWhatItUpdatesNext) {
  expect_as_on_one_device([](Trained& of, ReplicaContext& replica, bool by_rows) {
    of.update(replica, by_rows);
    of.update(replica, by_rows);
    of.update(replica, !by_rows);
    return of.rows({1, 2});
  });
}

TEST_F(ServedOwnUpdates, AreInWhatItAssigns) {
  expect_as_on_one_device([](Trained& of, ReplicaContext& replica, bool by_rows) {
    of.update(replica, by_rows);
    of.table.assign(at::clamp(of.all(), -1.5, 1.5));
    of.table.assign_add(at::ones({5, 2}));
    return of.all();
  });
  expect_as_on_one_device([](Trained& of, ReplicaContext& replica, bool by_rows) {
    of.update(replica, by_rows);
    of.table.scatter_update({.values = of.rows({1}) + 1, .indices = at_rows({1})});
    return of.rows({1, 4});
  });
}

TEST_F(ServedOwnUpdates, AreInTheSlotsThatItReads) {
  for (const char* rule : {"adagrad", "adam"}) {
    for (const bool by_rows : {false, true}) {
      expect_as_on_one_device(rule, [&](Trained& of, ReplicaContext& replica) {
        of.update(replica, by_rows);
        of.update(replica, by_rows);
        return of.slots[0].value().detach().clone();
      });
    }
  }
}

// Steps that read nothing after it ask the ps tasks for nothing more; and of rows that a step reads
// again, for no others.
TEST_F(ServedOwnUpdates, CostOnlyWhoLooks) {
  Trained of(strategy_, "sgd");
  const auto step = [&](bool looks) {
    const Load before = load(0);
    strategy_.run([&](ReplicaContext& replica) {
      of.update(replica, true);
      if (looks) of.rows({1, 4});
    });
    return rows_and_values(0, before);
  };
  step(false);
  EXPECT_EQ(step(false), step(true));
}

class ServedOwnUpdatesOfReplicas : public ServedOwnUpdates {
 protected:
  ServedOwnUpdatesOfReplicas() : ServedOwnUpdates(2) {}
};

// However many look at once, and in whatever order, each update is applied once.
TEST_F(ServedOwnUpdatesOfReplicas, AreSeenByAll) {
  for (const char* rule : {"sgd", "adagrad", "adam"}) {
    for (const bool by_rows : {false, true}) {
      Trained of(strategy_, rule);
      const auto step = [&](ReplicaContext& replica) {
        const bool is_first = replica.replica_id_in_sync_group() == 0;
        for (int i = 0; i < 3; ++i) {
          of.update(replica, by_rows, i);
          if (i == 1) is_first ? of.all() : of.rows({0, 1, 2, 3, 4});
        }
        return is_first ? of.all() : of.rows({0, 1, 2, 3, 4});
      };
      const ClusterCoordinator coordinator(strategy_);
      const Structure seen = coordinator
                                 .schedule([&] {
                                   const auto both = strategy_.run(step);
                                   return tuple(both.value(0), both.value(1));
                                 })
                                 .fetch();
      for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(at::equal(seen[i].tensor(), of.all())) << rule;
    }
  }
}

}  // namespace
}  // namespace cohort::distribute
