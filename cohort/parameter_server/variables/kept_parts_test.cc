// Checkpoints that ps tasks write, of a cluster in this process.
#include "cohort/parameter_server/variables/kept_parts.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "cohort/core/error.h"
#include "cohort/core/files/temporary_files.h"
#include "cohort/core/testing_errors.h"
#include "cohort/data/testing_files.h"
#include "cohort/parameter_server/cluster_coordinator.h"
#include "cohort/parameter_server/parameter_server_core.h"
#include "cohort/parameter_server/parameter_server_strategy.h"
#include "cohort/parameter_server/store/read_parts.h"
#include "cohort/parameter_server/store/testing_store.h"
#include "cohort/parameter_server/store/write_kept.h"
#include "cohort/parameter_server/testing_cluster.h"
#include "cohort/parameter_server/variables/served_variable.h"
#include "cohort/parameter_server/variables/sharded_variable.h"
#include "cohort/parameter_server/variables/testing_two_shards.h"
#include "cohort/train/bundle/bundle_reader.h"
#include "cohort/train/checkpoint.h"

namespace cohort::distribute {
namespace {

using coordinator::ClusterCoordinator;
using internal::posix_file_system;
using internal::WriteKeptReply;
using internal::WriteKeptRequest;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class KeptPartsTest : public data::FilesTest {
 protected:
  // Without the lock.
  std::vector<std::string> files(const std::string& in) const {
    std::vector<std::string> names = posix_file_system().list(directory + "/" + in);
    std::erase_if(names, [](const std::string& name) { return name == ".cohort-writer.lock"; });
    return names;
  }
};

class ClusterKeptPartsTest : public KeptPartsTest, protected TwoShards {
 protected:
  // Applied by both ps tasks.
  int64_t operations() const {
    int64_t sum = 0;
    for (int ps = 0; ps < 2; ++ps) sum += load(ps).operations;
    return sum;
  }
};

TEST_F(ClusterKeptPartsTest, EachPsTaskWritesAFileOfItsOwn) {
  const Variable v = table();
  const std::string path = train::Checkpoint({{"v", v}}).write(directory + "/saved/ckpt");
  EXPECT_THAT(files("saved"), ElementsAre("ckpt.data-00000-of-00003", "ckpt.data-00001-of-00003",
                                          "ckpt.data-00002-of-00003", "ckpt.index"));
  const auto restore = [&](const std::vector<Variable>& parts) {
    const ShardedVariable other(parts);
    train::Checkpoint({{"v", other}}).restore(path).assert_consumed();
    return other.value();
  };
  const auto zeros = [](int64_t rows) { return Variable(at::zeros({rows, 2})); };
  EXPECT_TRUE(at::equal(restore({zeros(5)}), v.value()));
  EXPECT_TRUE(at::equal(restore({zeros(1), zeros(3), zeros(1)}), v.value()));
  const Tensor saved = v.value();
  v.assign_add(at::ones({5, 2}));
  train::Checkpoint({{"v", v}}).restore(path).assert_consumed();
  EXPECT_TRUE(at::equal(v.value(), saved));
}

// Of another number of ps tasks, and of shards.
TEST_F(ClusterKeptPartsTest, AnyNumberOfPsTasksRestoresIt) {
  const std::string path =
      train::Checkpoint({{"v", table("table", 7)}}).write(directory + "/saved/ckpt");
  TestingCluster other(1, 3);
  const ParameterServerStrategy strategy(
      other.resolver(), {.variable_partitioner = partitioners::FixedShardsPartitioner(3)});
  const auto scope = strategy.scope();
  const Variable v(at::zeros({7, 2}), {.name = "table"});
  train::Checkpoint({{"v", v}}).restore(path).assert_consumed();
  EXPECT_TRUE(at::equal(v.value(), at::arange(14, float32).reshape({7, 2})));
}

// Closures run on while the files are written.
TEST_F(ClusterKeptPartsTest, AnAsynchronousSaveIsOneCut) {
  const auto [a, b] = [&] {
    const auto scope = strategy_.scope();
    return std::pair(Variable(0, {.name = "a", .aggregation = VariableAggregation::SUM}),
                     Variable(0, {.name = "b", .aggregation = VariableAggregation::SUM}));
  }();
  const auto step = strategy_.function("step", [&, &a = a, &b = b] {
    strategy_.run([&] {
      a.assign_add(1);
      b.assign_add(1);
    });
  });
  const ClusterCoordinator coordinator(strategy_, {.window = 3});
  const train::Checkpoint checkpoint({{"a", a}, {"b", b}});
  int64_t last = 0;
  for (int save = 0; save < 3; ++save) {
    coordinator.schedule(step).fetch();
    for (int i = 0; i < 20; ++i) coordinator.schedule(step);
    const std::string path = checkpoint.write(directory + "/saved/ckpt", {.enable_async = true});
    for (int i = 0; i < 20; ++i) coordinator.schedule(step);
    checkpoint.wait();
    coordinator.join();
    checkpoint.restore(path).assert_consumed();
    const auto count = a.value().item<int64_t>();
    EXPECT_EQ(b.value().item<int64_t>(), count);
    EXPECT_GT(count, last);
    last = count;
  }
}

TEST_F(ClusterKeptPartsTest, ALostPsTaskIsTheSavesError) {
  const Variable v = table();
  const train::Checkpoint checkpoint({{"v", v}});
  checkpoint.write(directory + "/saved/ckpt");
  cluster_.stop("ps", 1);
  EXPECT_THAT(thrown<UnavailableError>([&] { checkpoint.write(directory + "/saved/ckpt"); }),
              HasSubstr("/job:ps/task:1"));
  EXPECT_THAT(files("saved"), ElementsAre("ckpt.data-00000-of-00003", "ckpt.data-00001-of-00003",
                                          "ckpt.data-00002-of-00003", "ckpt.index"));
}

// What a restore brings does not come as pushes of the coordinator.
TEST_F(ClusterKeptPartsTest, EachPsTaskReadsItsPartsItself) {
  const Variable v = table();
  const train::Checkpoint checkpoint({{"v", v}});
  const std::string path = checkpoint.write(directory + "/saved/ckpt");
  const Tensor saved = v.value();
  v.assign_add(at::ones({5, 2}));
  const int64_t before = operations();
  checkpoint.restore(path).assert_consumed();
  EXPECT_EQ(operations(), before);
  EXPECT_TRUE(at::equal(v.value(), saved));
  for (const Variable& shard : ShardedVariable::of(v).variables())
    shard.assign(at::zeros(shard.shape()));
  checkpoint.restore(path).assert_consumed();
  EXPECT_TRUE(at::equal(v.value(), saved));
}

// Where a ps task does not see the checkpoint, one shard at a time passes through the coordinator.
TEST_F(ClusterKeptPartsTest, ShardsThatPsTasksDoNotFindAreSentOneAfterAnother) {
  const Variable v = table();
  auto& served = dynamic_cast<internal::ServedVariable&>(v.impl());
  const std::vector<train::RemoteRead> wanted = {
      {.part = served.part_of_checkpoint(0), .key = "v"},
      {.part = served.part_of_checkpoint(1), .key = "v"}};
  const auto received = [&] {
    int64_t bytes = 0;
    for (int ps = 0; ps < 2; ++ps) {
      bytes += load(ps).bytes_received;
    }
    return bytes;
  };
  const int64_t at_first = received();
  int64_t sent = 0;
  const auto value_of = [&](const train::RemoteRead& one) {
    EXPECT_EQ(received() - at_first, sent);  // all that was read before
    const Tensor value = at::full(one.part->shape(), 3.f);
    sent += static_cast<int64_t>(value.nbytes());
    return value;
  };
  const auto keeper = wanted[0].part->keeper();
  const Tensor before = v.value();
  keeper->send(wanted, value_of).reset();  // not all could be read
  EXPECT_TRUE(at::equal(v.value(), before));
  const auto reads = keeper->send(wanted, value_of);
  EXPECT_EQ(sent, 80);  // twice all of it
  EXPECT_TRUE(at::equal(v.value(), before));
  reads->commit();
  EXPECT_TRUE(at::equal(v.value(), at::full({5, 2}, 3.f)));
  EXPECT_THAT(thrown<InvalidArgumentError>(
                  [&] { keeper->send(wanted, [](const auto&) { return at::zeros({1}); }); }),
              HasSubstr("the restored value of 'table/part_0'"));
}

TEST_F(ClusterKeptPartsTest, WorkersSeeWhatARestoreHasBrought) {
  const auto v = [&] {
    const auto scope = strategy_.scope();
    return Variable(1.5f, {.name = "v"});
  }();
  const auto read = strategy_.function("read", [&] {
    return strategy_.reduce(ReduceOp::SUM, strategy_.run([&] { return v.value(); }));
  });
  const ClusterCoordinator coordinator(strategy_);
  const train::Checkpoint checkpoint({{"v", v}});
  const std::string path = checkpoint.write(directory + "/saved/ckpt");
  v.assign(at::full({}, 3.f));
  const auto number = [&] { return coordinator.schedule(read).fetch().tensor().item<float>(); };
  EXPECT_EQ(number(), 3.f);
  checkpoint.restore(path).assert_consumed();
  EXPECT_EQ(number(), 1.5f);
}

TEST_F(ClusterKeptPartsTest, ADamagedPartChangesNothingOnAnyPsTask) {
  const Variable v = table();
  const train::Checkpoint checkpoint({{"v", v}});
  const std::string path = checkpoint.write(directory + "/saved/ckpt");
  {
    std::fstream file(directory + "/saved/ckpt.data-00002-of-00003",
                      std::ios::in | std::ios::out | std::ios::binary);
    file.put('x');
  }
  const Tensor now = at::full({5, 2}, 7.f);
  v.assign(now);
  EXPECT_THAT(thrown<DataLossError>([&] { checkpoint.restore(path); }), HasSubstr("checksum"));
  EXPECT_TRUE(at::equal(v.value(), now));
}

class ReadPartsTest : public KeptPartsTest {
 protected:
  ReadPartsTest() {
    store_.create({3, 1}, "table/part_1", at::zeros({2, 2}));
    request_.prefix = train::Checkpoint({{"v", Variable(at::arange(10, float32).reshape({5, 2}))}})
                          .write(directory + "/ckpt");
    request_.index_crc = internal::bundle_index_crc(posix_file_system(), request_.prefix);
  }
  auto read() const { return internal::read_parts(posix_file_system(), store_, request_); }

  internal::VariableStore store_;
  internal::ReadPartsRequest request_{
      .id = 4,
      .prefix = "",
      .index_crc = 0,
      .parts = {{.key = {3, 1},
                 .name = "v/.ATTRIBUTES/VARIABLE_VALUE",
                 .slice = train::TensorSlice{.start = {3, 0}, .length = {2, 2}}}}};
};

TEST_F(ReadPartsTest, WhatIsReadIsAdoptedOnceAndTheStoreChangesThen) {
  store_.prepare(4, read().value());
  const auto before = read_one(store_, {3, 1});
  EXPECT_TRUE(at::equal(before.tensor, at::zeros({2, 2})));
  store_.adopt(4);
  const auto after = read_one(store_, {3, 1}, before.version);
  EXPECT_GT(after.version, before.version);
  EXPECT_TRUE(at::equal(after.tensor, at::arange(6, 10, float32).reshape({2, 2})));
  EXPECT_THROW(store_.adopt(4), NotFoundError);
  store_.prepare(5, read().value());
  store_.drop_prepared(5);
  EXPECT_THROW(store_.adopt(5), NotFoundError);
  store_.prepare(6, read().value());
  store_.clear();
  EXPECT_THROW(store_.adopt(6), NotFoundError);
}

TEST_F(ReadPartsTest, AShardThatIsNotThereYetIsMadeOfIt) {
  request_.parts.push_back({.key = {3, 0},
                            .name = request_.parts[0].name,
                            .slice = train::TensorSlice{.start = {0, 0}, .length = {3, 2}},
                            .new_shard = "table/part_0"});
  store_.prepare(4, read().value());
  EXPECT_TRUE(read_one(store_, {3, 0}).is_missing());
  store_.adopt(4);
  EXPECT_TRUE(at::equal(read_one(store_, {3, 0}).tensor, at::arange(6, float32).reshape({3, 2})));
  // It is there now, and has been changed since: it stays.
  request_.parts.erase(request_.parts.begin());
  store_.apply(0, {internal::AssignShard{{3, 0}, internal::AssignOp::kAssign, at::ones({3, 2})}});
  EXPECT_TRUE(read().value().empty());
  request_.parts[0].key = {3, 2};
  store_.prepare(5, read().value());
  store_.create({3, 2}, "table/part_0", at::zeros({3, 2}));
  store_.adopt(5);
  EXPECT_TRUE(at::equal(read_one(store_, {3, 0}).tensor, at::ones({3, 2})));
  EXPECT_TRUE(at::equal(read_one(store_, {3, 2}).tensor, at::zeros({3, 2})));
}

TEST_F(ReadPartsTest, AShardThatTheCheckpointCannotBeIsNotMade) {
  request_.parts = {{.key = {9, 0}, .name = request_.parts[0].name, .new_shard = "new"}};
  const auto refused = [&] { return thrown<InvalidArgumentError>([&] { read(); }); };
  request_.parts[0].slice = train::TensorSlice{.start = {0, 0}, .length = {int64_t{1} << 60, 2}};
  EXPECT_THAT(refused(), HasSubstr("does not contain the slice"));
  request_.parts[0] = {.key = {3, 1}, .name = request_.parts[0].name, .new_shard = "other"};
  EXPECT_THAT(refused(), HasSubstr("'table/part_1'"));
  request_.parts[0] = {.key = {9, 0}, .name = "_CHECKPOINTABLE_OBJECT_GRAPH", .new_shard = "new"};
  EXPECT_THAT(refused(), HasSubstr("which no shard can be"));
}

TEST_F(ReadPartsTest, AnotherCheckpointOfThatNameIsNotRead) {
  ++request_.index_crc;
  EXPECT_FALSE(read().has_value());
  --request_.index_crc;
  EXPECT_TRUE(read().has_value());
  posix_file_system().remove(request_.prefix + ".data-00000-of-00001");
  EXPECT_FALSE(read().has_value());
  request_.prefix = directory + "/other";
  EXPECT_FALSE(read().has_value());
}

TEST_F(ReadPartsTest, WhatDoesNotFitIsRefused) {
  const auto refused = [&] { return thrown<InvalidArgumentError>([&] { read(); }); };
  request_.parts[0].slice->length = {1, 2};
  EXPECT_THAT(refused(), HasSubstr("[2,2]"));
  request_.parts[0].slice->length = {2, 2};
  request_.parts[0].slice->start = {4, 0};
  refused();
  request_.prefix = "ckpt";
  EXPECT_THAT(refused(), HasSubstr("absolute"));
}

class WriteKeptTest : public KeptPartsTest {
 protected:
  WriteKeptTest() {
    posix_file_system().make_directories(directory + "/saved");
    posix_file_system().create(directory + "/saved/" + request_.probe)->close();
  }
  WriteKeptReply write() const {
    return internal::write_kept(posix_file_system(), {at::arange(3), at::ones({2, 2})}, request_);
  }

  const std::string temporary_ = internal::base_name(internal::temporary_path("", "ckpt.data"));
  WriteKeptRequest request_{
      .id = 1, .directory = directory + "/saved", .probe = temporary_, .file = temporary_ + "-0"};
};

TEST_F(WriteKeptTest, OneValueAfterAnother) {
  const WriteKeptReply reply = write();
  EXPECT_TRUE(reply.sees_directory);
  ASSERT_EQ(reply.places.size(), 2u);
  EXPECT_EQ(reply.places[1].offset, 24u);
  EXPECT_EQ(reply.places[1].size, 16u);
  EXPECT_EQ(posix_file_system().open(directory + "/saved/" + request_.file)->size(), 40u);
}

TEST_F(WriteKeptTest, OnlyBesideTheCoordinatorsFile) {
  request_.probe += "-of-another-host";
  EXPECT_FALSE(write().sees_directory);
  EXPECT_EQ(files("saved").size(), 1u);
}

TEST_F(WriteKeptTest, OnlyTemporaryFilesOfADirectory) {
  const auto refused = [&](const std::string& file) {
    request_.file = file;
    return thrown<InvalidArgumentError>([&] { write(); });
  };
  EXPECT_THAT(refused("ckpt.index"), HasSubstr("'ckpt.index'"));
  EXPECT_THAT(refused(temporary_ + "/../../x"), HasSubstr("no checkpoint asks for"));
  EXPECT_THAT(refused(temporary_), HasSubstr("no checkpoint asks for"));
  request_.directory = "saved";
  EXPECT_THAT(refused(temporary_ + "-0"), HasSubstr("'saved'"));
  EXPECT_EQ(files("saved").size(), 1u);
}

TEST(KeptMessage, ArrivesAsItWasSent) {
  using namespace internal;
  const KeepRequest keep = decode_keep(encode(KeepRequest{7, {{-3, 1}, {4, 0}}}));
  EXPECT_EQ(keep.id, 7u);
  EXPECT_EQ(keep.keys, (std::vector<ShardKey>{{-3, 1}, {4, 0}}));
  const WriteKeptRequest write = decode_write_kept(encode(WriteKeptRequest{7, "/d", "p", "f"}));
  EXPECT_EQ(write.directory + write.probe + write.file, "/dpf");
  const WriteKeptReply reply =
      decode_write_kept_reply(encode(WriteKeptReply{true, {{1, 2, ~uint32_t{0}}}}));
  EXPECT_TRUE(reply.sees_directory);
  EXPECT_EQ(reply.places.at(0).crc, ~uint32_t{0});
  EXPECT_EQ(decode_kept(encode(KeptRequest{7, 5})).index, 5u);
  const ReadPartsRequest read = decode_read_parts(
      encode(ReadPartsRequest{.id = 7,
                              .prefix = "/d/c",
                              .index_crc = ~uint32_t{0},
                              .parts = {{.key = {-3, 1}, .name = "v"},
                                        {.key = {4, 0},
                                         .name = "w",
                                         .slice = train::TensorSlice{{5, 0}, {6, 0}},
                                         .new_shard = "w/part_0"}}}));
  EXPECT_EQ(read.id, 7u);
  EXPECT_EQ(read.prefix, "/d/c");
  EXPECT_EQ(read.index_crc, ~uint32_t{0});
  ASSERT_EQ(read.parts.size(), 2u);
  EXPECT_EQ(read.parts[0].key, (ShardKey{-3, 1}));
  EXPECT_EQ(read.parts[0].slice, std::nullopt);
  EXPECT_EQ(read.parts[1].name, "w");
  EXPECT_EQ(read.parts[1].slice, (train::TensorSlice{{5, 0}, {6, 0}}));
  EXPECT_EQ(read.parts[0].new_shard + read.parts[1].new_shard, "w/part_0");
  EXPECT_TRUE(decode_read_parts_reply(encode(ReadPartsReply{true})).found);
  const SendPartRequest sent =
      decode_send_part(encode(SendPartRequest{7, {{4, 1}, at::ones({2}), "w/part_1"}}));
  EXPECT_EQ(sent.id, 7u);
  EXPECT_EQ(sent.part.key, (ShardKey{4, 1}));
  EXPECT_EQ(sent.part.new_shard, "w/part_1");
  EXPECT_TRUE(at::equal(sent.part.value, at::ones({2})));
  EXPECT_THROW(decode_keep({.control = "\xff\xff"}), DataLossError);
}

}  // namespace
}  // namespace cohort::distribute
