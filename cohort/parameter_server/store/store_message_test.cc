#include "cohort/parameter_server/store/store_message.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"
#include "cohort/optim/rmsprop.h"
#include "cohort/optim/transformed.h"

namespace cohort::internal {
namespace {

TEST(StoreMessage, CreationsAndReadsArriveAsTheyWereSent) {
  const CreateRequest creation =
      decode_create(encode(CreateRequest{{-7, 2}, "embedding/part_2", at::arange(6).view({2, 3})}));
  EXPECT_EQ(creation.key, (ShardKey{-7, 2}));
  EXPECT_EQ(creation.name, "embedding/part_2");
  EXPECT_TRUE(at::equal(creation.value, at::arange(6).view({2, 3})));
  EXPECT_FALSE(creation.owner.has_value());
  const CreateRequest slot = decode_create(encode(
      CreateRequest{.key = {-9, 2}, .name = "m", .value = at::ones({2}), .owner = {{-7, 2}}}));
  EXPECT_EQ(slot.owner, (ShardKey{-7, 2}));

  const ReadRequest read = decode_read(encode(ReadRequest{{{{1, 0}, -1}, {{5, 1}, 42}}}));
  ASSERT_EQ(read.entries.size(), 2u);
  EXPECT_EQ(read.entries[0].known_version, -1);
  EXPECT_EQ(read.entries[1].key, (ShardKey{5, 1}));
  EXPECT_EQ(read.entries[1].known_version, 42);

  const ReadReply reply = decode_read_reply(encode(ReadReply{{{3, at::ones({2})}, {4, {}}}}));
  ASSERT_EQ(reply.values.size(), 2u);
  EXPECT_TRUE(at::equal(reply.values[0].tensor, at::ones({2})));
  EXPECT_EQ(reply.values[1].version, 4);
  EXPECT_FALSE(reply.values[1].tensor.defined());

  const RowsRequest rows =
      decode_rows(encode(RowsRequest{{{{9, 1}, at::arange(3)}, {{9, 2}, at::arange(2)}}}));
  ASSERT_EQ(rows.entries.size(), 2u);
  EXPECT_EQ(rows.entries[0].key, (ShardKey{9, 1}));
  EXPECT_EQ(rows.entries[0].indices.numel(), 3);
  EXPECT_EQ(rows.entries[1].key, (ShardKey{9, 2}));

  const ReleaseRequest release =
      decode_release(encode(ReleaseRequest{{{{9, 1}, "w/part_1"}, {{-4, 0}, ""}}}));
  ASSERT_EQ(release.shards.size(), 2u);
  EXPECT_EQ(release.shards[0].key, (ShardKey{9, 1}));
  EXPECT_EQ(release.shards[0].name, "w/part_1");
  EXPECT_EQ(release.shards[1].key, (ShardKey{-4, 0}));

  const VariableStore::Load sent{.shards = 1,
                                 .bytes = 2,
                                 .operations = 3,
                                 .repeated = 4,
                                 .values_read = 5,
                                 .rows_read = 6,
                                 .bytes_read = 7,
                                 .largest = {{"table", 9}, {"bias", 8}},
                                 .updates = 10,
                                 .staleness = 11,
                                 .refused = 12,
                                 .bytes_received = 13,
                                 .bytes_sent = 14};
  EXPECT_EQ(decode_load(encode(sent)), sent);
}

TEST(StoreMessage, KnownInitialValuesAreADescription) {
  const KnownShard known{.values = {.kind = distribute::KnownValues::Kind::kNormal,
                                    .first = 0.5,
                                    .second = 2,
                                    .seed = ~uint64_t{0},
                                    .stream = 3,
                                    .position = 8},
                         .shape = {2, 3},
                         .first = 6,
                         .dtype = at::kHalf};
  const rpc::Message message = encode(CreateRequest{.key = {5, 2}, .name = "v", .known = known});
  EXPECT_EQ(message.bulk_bytes(), 0u);
  const CreateRequest creation = decode_create(message);
  ASSERT_TRUE(creation.known.has_value());
  EXPECT_FALSE(creation.value.defined());
  EXPECT_EQ(creation.known->shape, known.shape);
  EXPECT_EQ(creation.known->dtype, at::kHalf);
  EXPECT_EQ(creation.known->values.seed, ~uint64_t{0});
  EXPECT_EQ(creation.known->values.second, 2);
  KnownShard huge = known;
  huge.shape = {int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_THROW(decode_create(encode(CreateRequest{.key = {5, 2}, .name = "v", .known = huge})),
               InvalidArgumentError);
}

TEST(StoreMessage, PushesKeepTheirOrderRulesAndTokens) {
  const std::shared_ptr<const optim::UpdateRule> rule =
      optim::make_rmsprop({.rho = 0.3, .momentum = 0.25});
  const ApplyRequest push = decode_apply(encode(ApplyRequest{
      .token = uint64_t{1} << 60,
      .forget_below = 17,
      .ops = {AssignShard{{1, 0}, AssignOp::kSub, at::ones({2})},
              UpdateShard{.key = {2, 1},
                          .slots = {{3, 1}, {4, 1}},
                          .gradient = at::ones({1, 2}),
                          .indices = at::zeros({1}, int64),
                          .rule = rule,
                          .learning_rate = 0.125,
                          .iteration = 12,
                          .based_on = int64_t{1} << 40},
              ScatterShard{{5, 0}, ScatterOp::kMax, at::zeros({1}, int64), at::ones({1, 2})},
              UpdateShard{.key = {6, 0},
                          .slots = {{7, 0}, {8, 0}},
                          .gradient = at::ones({3}),
                          .rule = rule}}}));
  EXPECT_EQ(push.token, uint64_t{1} << 60);
  EXPECT_EQ(push.forget_below, 17u);
  ASSERT_EQ(push.ops.size(), 4u);
  EXPECT_EQ(std::get<AssignShard>(push.ops[0]).op, AssignOp::kSub);
  const auto& update = std::get<UpdateShard>(push.ops[1]);
  EXPECT_EQ(update.key, (ShardKey{2, 1}));
  EXPECT_EQ(update.slots[1], (ShardKey{4, 1}));
  EXPECT_EQ(update.learning_rate, 0.125);
  EXPECT_EQ(update.iteration, 12);
  EXPECT_EQ(update.based_on, int64_t{1} << 40);
  EXPECT_TRUE(update.indices.defined());
  EXPECT_EQ(update.rule->config().values, rule->config().values);
  EXPECT_EQ(std::get<ScatterShard>(push.ops[2]).op, ScatterOp::kMax);
  const auto& dense = std::get<UpdateShard>(push.ops[3]);
  EXPECT_FALSE(dense.indices.defined());
  EXPECT_EQ(dense.based_on, -1);
  EXPECT_EQ(dense.rule, update.rule);  // sent once
}

// Of what every optimizer can do to gradients and weights.
TEST(StoreMessage, RulesKeepTheirTransforms) {
  const std::shared_ptr<const optim::UpdateRule> rule = optim::make_transformed(
      optim::make_rmsprop({}),
      {.clipvalue = 0.7, .weight_decay = 0.1, .ema_momentum = 0.5, .ema_overwrite_frequency = 2});
  const ApplyRequest push = decode_apply(encode(
      ApplyRequest{.ops = {UpdateShard{.key = {6, 0}, .gradient = at::ones({3}), .rule = rule}}}));
  const auto transform = std::get<UpdateShard>(push.ops.at(0)).rule->config().transform;
  ASSERT_TRUE(transform.has_value());
  EXPECT_EQ(transform->clipvalue, 0.7);
  EXPECT_EQ(transform->weight_decay, 0.1);
  EXPECT_EQ(transform->ema_momentum, 0.5);
  EXPECT_EQ(transform->ema_overwrite_frequency, 2);
}

TEST(StoreMessage, APushCarriesReads) {
  const PushPullRequest both = decode_push_pull(encode(PushPullRequest{
      .push = {.token = 5, .ops = {AssignShard{{1, 0}, AssignOp::kAdd, at::ones({2})}}},
      .read = {{{{2, 0}, 42}}},
      .rows = {{{{9, 1}, at::arange(3)}}}}));
  EXPECT_EQ(both.push.token, 5u);
  EXPECT_TRUE(at::equal(std::get<AssignShard>(both.push.ops.at(0)).operand, at::ones({2})));
  EXPECT_EQ(both.read.entries.at(0).known_version, 42);
  EXPECT_TRUE(at::equal(both.rows.entries.at(0).indices, at::arange(3)));
  const PushPullRequest neither = decode_push_pull(encode(PushPullRequest{}));
  EXPECT_TRUE(neither.push.ops.empty() && neither.read.entries.empty());
  rpc::Message cut = encode(PushPullRequest{.rows = {{{{9, 1}, at::arange(3)}}}});
  cut.bulk.clear();
  EXPECT_THROW(decode_push_pull(cut), Error);
  rpc::Message longer = encode(
      PushPullRequest{.push = {.ops = {AssignShard{{1, 0}, AssignOp::kAdd, at::ones({2})}}}});
  longer.bulk.pop_back();
  EXPECT_THROW(decode_push_pull(longer), InvalidArgumentError);
}

TEST(StoreMessage, RefusesWhatIsNoMessage) {
  const rpc::Message good = encode(RowsRequest{{{{9, 1}, at::arange(3)}}});
  EXPECT_THROW(decode_rows({.control = "\xff\xff"}), Error);
  EXPECT_THROW(decode_rows({.control = good.control}), Error);  // without its bytes
  EXPECT_THROW(decode_create({.control = ""}), Error);
  EXPECT_THROW(decode_apply({.control = std::string(40, '\x1a')}), Error);
}

}  // namespace
}  // namespace cohort::internal
