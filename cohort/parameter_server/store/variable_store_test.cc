#include "cohort/parameter_server/store/variable_store.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <thread>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"
#include "cohort/optim/adam.h"
#include "cohort/optim/sgd.h"
#include "cohort/parameter_server/store/testing_store.h"
#include "cohort/parameter_server/testing_gate.h"

namespace cohort::internal {
namespace {

using ::testing::HasSubstr;

constexpr ShardKey kWeight{.variable = 0};
constexpr ShardKey kM{.variable = 1}, kV{.variable = 2};
constexpr ShardKey kCount{.variable = 3}, kFlag{.variable = 4};

std::shared_ptr<const optim::UpdateRule> sgd() { return optim::make_sgd(); }

Tensor rows(std::vector<int64_t> ids) { return at::tensor(ids, int64); }

TEST(VariableStore, CreatesOnceAndRefusesAnotherProgram) {
  VariableStore store;
  EXPECT_TRUE(store.create(kWeight, "w", at::ones({2, 3})));
  EXPECT_FALSE(store.create(kWeight, "w", at::zeros({2, 3})));
  EXPECT_TRUE(at::equal(read_one(store, kWeight).tensor, at::ones({2, 3})));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                store.create(kWeight, "b", at::zeros({2, 3}));
              }),
              HasSubstr("variable 0 is 'w' here, not 'b'"));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { store.create(kWeight, "w", at::zeros({3})); }),
              HasSubstr("float32 [3]"));
  EXPECT_TRUE(read_one(store, kM).is_missing());
  EXPECT_THAT(thrown<NotFoundError>([&] { store.read_rows(kM, at::zeros({1}, int64)); }),
              HasSubstr("variable 1"));
  EXPECT_EQ(store.load().bytes, 24);
}

TEST(VariableStore, ReleasesWhatIsThereUnderTheName) {
  VariableStore store;
  store.create(kWeight, "w", at::ones({2, 3}));
  store.create(kM, "m", at::ones({4}));
  const auto read = read_one(store, kWeight);
  store.keep(7, {kWeight});
  store.release({{kWeight, "w"}, {kM, "other"}, {kV, "v"}});
  EXPECT_EQ(store.load().shards, 1);
  EXPECT_EQ(store.load().bytes, 16);
  EXPECT_TRUE(read_one(store, kWeight, read.version).is_missing());
  store.release({{kWeight, "w"}});
  // Who reads, and a checkpoint that is being written, have it still.
  EXPECT_TRUE(at::equal(read.tensor, at::ones({2, 3})));
  EXPECT_TRUE(at::equal(store.kept(7).at(0), at::ones({2, 3})));
  EXPECT_THAT(thrown<NotFoundError>([&] {
                store.apply(0, {AssignShard{kWeight, AssignOp::kAdd, at::ones({2, 3})}});
              }),
              HasSubstr("last handle"));
  EXPECT_TRUE(store.create(kWeight, "w", at::zeros({2, 3})));
}

TEST(VariableStore, WhatIsTiedToAShardGoesWithItUnlessItIsHeld) {
  VariableStore store;
  store.create(kWeight, "w", at::ones({2, 3}));
  store.create(kM, "m", at::ones({2, 3}));
  store.create(kV, "v", at::ones({2, 3}));
  store.create(kCount, "of v", at::ones({2, 3}));
  store.tie(kM, kWeight);
  store.tie(kM, kWeight);  // another worker
  store.tie(kV, kWeight);
  store.hold(kV);
  store.tie(kCount, kV);
  EXPECT_THAT(thrown<NotFoundError>([&] { store.tie(kM, kFlag); }), HasSubstr("variable 4"));
  store.release({{kWeight, "w"}});
  EXPECT_TRUE(read_one(store, kM).is_missing());
  EXPECT_EQ(store.load().shards, 2);
  store.tie(kV, kCount);  // whatever a peer says
  store.release({{kV, "v"}});
  EXPECT_EQ(store.load().shards, 0);
  store.create(kWeight, "w", at::ones({2, 3}));
  store.create(kM, "m", at::ones({2, 3}));
  store.release({{kWeight, "w"}});
  EXPECT_EQ(store.load().shards, 1);  // what was tied to the one before is not to this one
}

TEST(VariableStore, ReadsOnlyWhatHasChanged) {
  VariableStore store;
  store.create(kWeight, "w", at::zeros({2}));
  const auto first = read_one(store, kWeight);
  EXPECT_FALSE(read_one(store, kWeight, first.version).tensor.defined());
  store.apply(0, {AssignShard{kWeight, AssignOp::kAdd, at::ones({2})}});
  const auto second = read_one(store, kWeight, first.version);
  EXPECT_GT(second.version, first.version);
  EXPECT_TRUE(at::equal(second.tensor, at::ones({2})));
  EXPECT_TRUE(at::equal(first.tensor, at::zeros({2})));  // it was still in use
}

TEST(VariableStore, WritesInPlaceWhenNobodyReads) {
  VariableStore store;
  store.create(kWeight, "w", at::zeros({2}));
  const void* before = read_one(store, kWeight).tensor.data_ptr();
  store.apply(0, {AssignShard{kWeight, AssignOp::kSub, at::ones({2})}});
  EXPECT_EQ(read_one(store, kWeight).tensor.data_ptr(), before);
}

TEST(VariableStore, UpdatesAsAnOptimizerDoes) {
  VariableStore store;
  for (const ShardKey& key : {kWeight, kM, kV}) {
    store.create(key, key == kWeight ? "w" : "slot",
                 key == kWeight ? at::ones({4, 2}) : at::zeros({4, 2}));
  }
  const std::shared_ptr<const optim::UpdateRule> adam = optim::make_adam();
  VariableStore sparse;
  for (const ShardKey& key : {kWeight, kM, kV}) {
    sparse.create(key, "x", read_one(store, key).tensor.clone());
  }
  Tensor gradient = at::zeros({4, 2});
  gradient[1].fill_(0.5);
  gradient[3].fill_(-2);
  for (int64_t iteration = 0; iteration < 3; ++iteration) {
    store.apply(0, {UpdateShard{.key = kWeight,
                                .slots = {kM, kV},
                                .gradient = gradient,
                                .rule = adam,
                                .learning_rate = 0.1,
                                .iteration = iteration}});
    sparse.apply(0, {UpdateShard{.key = kWeight,
                                 .slots = {kM, kV},
                                 .gradient = gradient.index_select(0, rows({1, 3})),
                                 .indices = rows({1, 3}),
                                 .rule = adam,
                                 .learning_rate = 0.1,
                                 .iteration = iteration}});
  }
  EXPECT_NEAR(read_one(store, kWeight).tensor[1][0].item<double>(), 0.7, 1e-4);
  for (const ShardKey& key : {kWeight, kM, kV}) {
    EXPECT_TRUE(at::equal(read_one(store, key).tensor, read_one(sparse, key).tensor));
  }
}

TEST(VariableStore, CountsHowManyUpdatesEachGradientHasMissed) {
  VariableStore store;
  store.clear(int64_t{7} << 32);  // versions begin far above 0
  store.create(kWeight, "w", at::zeros({2}));
  const auto update = [&](int64_t based_on) {
    store.apply(0, {UpdateShard{.key = kWeight,
                                .gradient = at::ones({2}),
                                .rule = sgd(),
                                .learning_rate = 1,
                                .based_on = based_on}});
  };
  const int64_t version = read_one(store, kWeight).version;
  for (int i = 0; i < 3; ++i) update(version);  // 0, 1 and 2 came between
  update(version + 3);
  update(-1);              // unknown
  update(version + 1000);  // a version that has never been
  EXPECT_EQ(store.load().updates, 4);
  EXPECT_EQ(store.load().staleness, 3);
  store.clear();
  EXPECT_EQ(store.load().updates, 0);
}

TEST(VariableStore, ScattersAndReadsRows) {
  VariableStore store;
  store.create(kWeight, "w", at::zeros({4, 1}));
  store.apply(0, {ScatterShard{kWeight, ScatterOp::kAdd, rows({3, 1, 3}), at::ones({3, 1})}});
  EXPECT_TRUE(at::equal(store.read_rows(kWeight, rows({3, 0, 1})).tensor.flatten(),
                        at::tensor({2.f, 0.f, 1.f})));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { store.read_rows(kWeight, rows({4})); }),
              HasSubstr("'w' has 4 rows, not row 4"));
}

TEST(VariableStore, WhatIsKeptForACheckpointStaysAsItWas) {
  VariableStore store;
  store.create(kWeight, "w", at::zeros({4, 1}));
  store.keep(7, {kWeight});
  store.apply(0, {AssignShard{kWeight, AssignOp::kAdd, at::ones({4, 1})}});
  store.apply(0, {AssignShard{kWeight, AssignOp::kAdd, at::ones({4, 1})}});
  EXPECT_TRUE(at::equal(store.kept(7).at(0), at::zeros({4, 1})));
  EXPECT_TRUE(at::equal(read_one(store, kWeight).tensor, at::full({4, 1}, 2.f)));
  store.drop_kept(7);
  store.drop_kept(7);
  EXPECT_THAT(thrown<NotFoundError>([&] { store.kept(7); }), HasSubstr("number 7"));
  EXPECT_THROW(store.keep(8, {{99, 0}}), NotFoundError);
  store.keep(9, {kWeight});
  store.clear();
  EXPECT_THROW(store.kept(9), NotFoundError);
}

// A drop may overtake the slow call that it is about: nothing may stay until another coordinator
// comes.
TEST(VariableStore, WhatWasDroppedBeforeItCameDoesNotStay) {
  VariableStore store;
  store.create(kWeight, "w", at::zeros({2}));
  store.drop_kept(1);
  EXPECT_THROW(store.keep(1, {kWeight}), FailedPreconditionError);
  store.drop_prepared(2);
  EXPECT_THROW(store.prepare(2, {{kWeight, at::ones({2})}}), FailedPreconditionError);
  store.prepare_more(3, {kWeight, at::ones({2})});
  store.drop_prepared(3);
  EXPECT_THROW(store.prepare_more(3, {kWeight, at::ones({2})}), FailedPreconditionError);
  EXPECT_THROW(store.adopt(3), NotFoundError);
  EXPECT_TRUE(at::equal(read_one(store, kWeight).tensor, at::zeros({2})));
  store.clear();  // another coordinator, which counts from 1
  store.create(kWeight, "w", at::zeros({2}));
  store.keep(1, {kWeight});
  store.prepare(2, {{kWeight, at::ones({2})}});
  store.adopt(2);
  EXPECT_TRUE(at::equal(store.kept(1).at(0), at::zeros({2})));
  EXPECT_TRUE(at::equal(read_one(store, kWeight).tensor, at::ones({2})));
}

TEST(VariableStore, BadOperationsChangeNothing) {
  VariableStore store;
  store.create(kWeight, "w", at::zeros({2, 2}));
  store.create(kV, "v", at::zeros({2, 2}));
  store.create(kCount, "count", at::zeros({2, 2}, int64));
  store.create(kFlag, "flag", at::zeros({2, 2}, at::kBool));
  const AssignShard good{kWeight, AssignOp::kAdd, at::ones({2, 2})};
  const std::vector<StoreOp> bad = {
      AssignShard{kWeight, AssignOp::kAdd, at::ones({2})},
      AssignShard{kWeight, AssignOp::kAdd, at::ones({2, 2}, float64)},
      AssignShard{kM, AssignOp::kAdd, at::ones({2, 2})},
      ScatterShard{kWeight, ScatterOp::kAdd, rows({2}), at::ones({1, 2})},
      ScatterShard{kWeight, ScatterOp::kAdd, rows({-1}), at::ones({1, 2})},
      UpdateShard{.key = kWeight, .gradient = at::ones({3}), .rule = sgd()},
      UpdateShard{
          .key = kWeight, .gradient = at::ones({2, 2}), .indices = rows({1, 1}), .rule = sgd()},
      UpdateShard{.key = kWeight, .slots = {kM}, .gradient = at::ones({2, 2}), .rule = sgd()},
      // What the rule itself would refuse.
      UpdateShard{.key = kWeight,
                  .gradient = at::ones({2, 2}),
                  .rule = sgd(),
                  .learning_rate = std::nan("")},
      UpdateShard{.key = kWeight, .gradient = at::ones({2, 2}), .rule = sgd(), .iteration = -1},
      UpdateShard{.key = kCount, .gradient = at::ones({2, 2}, int64), .rule = sgd()},
      AssignShard{kFlag, AssignOp::kSub, at::ones({2, 2}, at::kBool)},
      // Slots that are not slots.
      UpdateShard{.key = kWeight,
                  .slots = {kWeight, kV},
                  .gradient = at::ones({2, 2}),
                  .rule = optim::make_adam()},
      UpdateShard{.key = kWeight,
                  .slots = {kV, kV},
                  .gradient = at::ones({2, 2}),
                  .rule = optim::make_adam()},
  };
  for (const StoreOp& op : bad) EXPECT_ANY_THROW(store.apply(7, {good, op})) << op.index();
  EXPECT_TRUE(at::equal(read_one(store, kWeight).tensor, at::zeros({2, 2})));
  EXPECT_TRUE(store.apply(7, {good}));  // the token is not used up
}

TEST(VariableStore, AppliesEachTokenOnce) {
  VariableStore store;
  store.create(kWeight, "w", at::zeros({}));
  const std::vector<StoreOp> add = {AssignShard{kWeight, AssignOp::kAdd, at::ones({})}};
  EXPECT_TRUE(store.apply(5, add));
  EXPECT_FALSE(store.apply(5, add));
  EXPECT_TRUE(store.apply(6, add));
  store.forget_tokens_below(6);
  EXPECT_FALSE(store.apply(3, add));  // its time is over
  EXPECT_FALSE(store.apply(6, add));
  EXPECT_EQ(read_one(store, kWeight).tensor.item<float>(), 2);
  EXPECT_EQ(store.load().repeated, 3);
}

// A rule that does what the test says instead of an update.
class ToldRule final : public optim::UpdateRule {
 public:
  explicit ToldRule(std::function<void()> update) : update_(std::move(update)) {}
  std::string name() const override { return "Told"; }
  optim::RuleConfig config() const override { return {.name = "Told", .values = {}}; }
  std::vector<optim::SlotSpec> slots() const override { return {}; }
  std::vector<optim::SlotList> slot_lists() const override { return {}; }
  int num_slots() const override { return 0; }
  optim::StepScalars prepare(double, int64_t) const override { return {}; }
  void update(const optim::StepScalars&, const optim::Slice&) const override { update_(); }
  void update_tensors(const optim::StepScalars&, const optim::TensorSlice&) const override {
    update_();
  }
  bool zero_gradient_is_no_op() const override { return true; }

 private:
  const std::function<void()> update_;
};

StoreOp told_update(std::function<void()> update) {
  return UpdateShard{.key = kWeight,
                     .gradient = at::ones({}),
                     .rule = std::make_shared<ToldRule>(std::move(update))};
}

TEST(VariableStore, ARepetitionIsAnsweredWhenTheFirstHasBeenApplied) {
  VariableStore store;
  store.create(kWeight, "w", at::zeros({}));
  store.create(kM, "m", at::zeros({}));
  const StoreOp add = AssignShard{kM, AssignOp::kAdd, at::ones({})};
  distribute::Gate gate;
  std::thread first([&] { EXPECT_TRUE(store.apply(5, {told_update([&] { gate.pass(); }), add})); });
  ASSERT_TRUE(gate.wait_for(1));
  std::atomic<bool> is_answered{false};
  std::thread second([&] {
    EXPECT_FALSE(store.apply(5, {add}));
    is_answered = true;
    EXPECT_EQ(read_one(store, kM).tensor.item<float>(), 1);
  });
  for (int i = 0; i < 1000 && !is_answered; ++i)
    std::this_thread::yield();  // it has time to be wrong
  gate.open();
  first.join();
  second.join();
  EXPECT_EQ(store.load().repeated, 1);
}

TEST(VariableStore, APushThatFailsBetweenOperationsGoesOnThere) {
  VariableStore store;
  store.create(kWeight, "w", at::zeros({}));
  store.create(kM, "m", at::zeros({}));
  const StoreOp add = AssignShard{kM, AssignOp::kAdd, at::ones({})};
  int updates = 0;
  const std::vector<StoreOp> push = {add, told_update([&] {
                                       if (++updates == 1) throw ResourceExhaustedError("memory");
                                     }),
                                     add};
  EXPECT_THROW(store.apply(5, push), ResourceExhaustedError);
  EXPECT_EQ(read_one(store, kM).tensor.item<float>(), 1);
  EXPECT_TRUE(store.apply(5, push));
  EXPECT_EQ(read_one(store, kM).tensor.item<float>(), 2);
  EXPECT_FALSE(store.apply(5, push));
}

// Whatever a peer sends, nobody waits for ever.
TEST(VariableStore, UpdatesThatNameEachOtherAsSlotsDoNotWaitForEachOther) {
  VariableStore store;
  for (const ShardKey& key : {kM, kV}) store.create(key, "x", at::zeros({64}));
  const std::shared_ptr<const optim::UpdateRule> rule = optim::make_sgd({.momentum = 0.5});
  std::vector<std::thread> peers;
  for (const auto& [key, slot] : {std::pair(kM, kV), std::pair(kV, kM)}) {
    peers.emplace_back([&, key = key, slot = slot] {
      for (int i = 0; i < 5000; ++i) {
        store.apply(0, {UpdateShard{.key = key,
                                    .slots = {slot},
                                    .gradient = at::ones({64}),
                                    .rule = rule,
                                    .learning_rate = 0.1}});
      }
    });
  }
  for (std::thread& peer : peers) peer.join();
  EXPECT_EQ(store.load().operations, 10000);
}

TEST(VariableStore, ReadersNeverSeeHalfAnUpdate) {
  VariableStore store;
  store.create(kWeight, "w", at::zeros({1000}));
  std::atomic<bool> over{false};
  std::thread reader([&] {
    while (!over) {
      const Tensor value = read_one(store, kWeight).tensor;
      ASSERT_TRUE(at::equal(value, at::full({1000}, value[0].item<float>())));
    }
  });
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 2; ++writer) {
    writers.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        store.apply(0, {AssignShard{kWeight, AssignOp::kAdd, at::ones({1000})}});
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  over = true;
  reader.join();
  EXPECT_EQ(read_one(store, kWeight).tensor[999].item<float>(), 400);
}

TEST(VariableStore, AssignmentsToSmallShardsThatFollowOneAnotherAreReadTogether) {
  VariableStore store;
  store.create(kWeight, "w", at::zeros({2000}));  // not small
  store.create(kM, "total", at::zeros({}));
  store.create(kCount, "count", at::zeros({}));
  const Tensor one = at::ones({});
  constexpr int kPushes = 20'000;
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 2; ++writer) {
    writers.emplace_back([&] {
      for (int i = 0; i < kPushes; ++i) {
        store.apply(
            0, {AssignShard{kM, AssignOp::kAdd, one}, AssignShard{kCount, AssignOp::kAdd, one}});
      }
    });
  }
  float total = 0;
  int64_t torn = 0;
  while (total < 2 * kPushes) {
    const auto values = store.read_together({{kCount}, {kWeight}, {kM}});
    total = values[2].tensor.item<float>();
    torn += values[0].tensor.item<float>() != total ? 1 : 0;
    EXPECT_EQ(values[1].tensor.numel(), 2000);
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(torn, 0);
  EXPECT_EQ(store.load().operations, 4 * kPushes);
  const auto known = store.read_together({{kCount}, {kM}});
  EXPECT_FALSE(store.read_together({{kCount, known[0].version}, {kM}})[0].tensor.defined());
  EXPECT_TRUE(store.read_together({{kCount, known[0].version}, {kM}})[1].tensor.defined());
}

}  // namespace
}  // namespace cohort::internal
