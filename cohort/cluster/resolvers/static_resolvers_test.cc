// Resolvers that ask nobody: simple, union, TF_CONFIG.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "cohort/cluster/resolvers/simple_cluster_resolver.h"
#include "cohort/cluster/resolvers/tf_config_cluster_resolver.h"
#include "cohort/cluster/resolvers/union_cluster_resolver.h"
#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"

namespace cohort::distribute::cluster_resolver {
namespace {

using train::ClusterSpec;

constexpr char kCluster[] =
    R"("cluster": {"ps": ["ps0:2222", "ps1:2222"],
                   "worker": ["worker0:2222", "worker1:2222", "worker2:2222"]})";

TFConfigClusterResolver tf_config(const std::string& members,
                                  TFConfigClusterResolverOptions options = {}) {
  options.variables = Variables{{"TF_CONFIG", "{" + members + "}"}};
  return TFConfigClusterResolver(options);
}

TEST(TFConfigClusterResolverTest, TellsClusterTaskAndMaster) {
  const auto resolver =
      tf_config(std::string(kCluster) + R"(, "task": {"type": "ps", "index": 0})");
  EXPECT_EQ(resolver.cluster_spec().num_tasks("worker"), 3);
  EXPECT_EQ(resolver.task_type(), "ps");
  EXPECT_EQ(resolver.task_id(), 0);
  EXPECT_EQ(resolver.master(), "ps0:2222");
  EXPECT_EQ(resolver.master("worker", 1), "worker1:2222");
  EXPECT_EQ(resolver.master("worker", 1, "grpc"), "grpc://worker1:2222");
  EXPECT_THROW(resolver.master("worker", 3), InvalidArgumentError);
}

TEST(TFConfigClusterResolverTest, PutsTheRpcLayerBeforeAddresses) {
  const std::string members =
      std::string(kCluster) + R"(, "task": {"type": 123456, "index": "1"}, "rpc_layer": "grpc")";
  const auto typed = tf_config(members);
  EXPECT_EQ(typed.task_type(), "123456");
  EXPECT_EQ(typed.task_id(), 1);
  const auto resolver = tf_config(members, {.task_type = "ps", .task_id = 0});
  EXPECT_EQ(resolver.master(), "grpc://ps0:2222");
  EXPECT_EQ(resolver.rpc_layer(), "grpc");
}

TEST(TFConfigClusterResolverTest, SaysNoMasterForAProgramAlone) {
  EXPECT_EQ(tf_config("").master(), "");
  EXPECT_TRUE(tf_config("").cluster_spec().empty());
  EXPECT_EQ(tf_config("").task_type(), std::nullopt);
  EXPECT_EQ(tf_config(R"("cluster": {"worker": ["w:1"]}, "task": {"type": "worker", "index": 0})")
                .master(),
            "");
  EXPECT_EQ(tf_config(std::string(kCluster) + R"(, "session_master": "sessionmaster:2222",
                      "task": {"type": "ps", "index": 0}, "rpc_layer": "grpc")")
                .master(),
            "sessionmaster:2222");
  EXPECT_TRUE(TFConfigClusterResolver({.variables = Variables{}}).cluster_spec().empty());
}

TEST(TFConfigClusterResolverTest, SaysTheMasterOfAllForEachTask) {
  const auto alone = tf_config(R"("cluster": {"worker": ["w:1"]})");
  EXPECT_EQ(alone.master("worker", 0), "");
  EXPECT_EQ(alone.master("worker", 0, "grpc"), "");
  EXPECT_EQ(tf_config("").master("worker", 0), "");
  const auto with_master = tf_config(std::string(kCluster) + R"(, "session_master": "m:2222")");
  EXPECT_EQ(with_master.master("ps", 1, "grpc"), "m:2222");
  EXPECT_EQ(with_master.master("worker", 9), "m:2222");
}

TEST(TFConfigClusterResolverTest, OfAnUnknownTaskThereIsNoMaster) {
  for (const char* task : {"", R"(, "task": {"index": 0})", R"(, "task": {"type": "ps"})"}) {
    const auto resolver = tf_config(std::string(kCluster) + task);
    EXPECT_THAT(thrown<InvalidArgumentError>([&] { resolver.master(); }),
                ::testing::HasSubstr("TF_CONFIG: task"));
    EXPECT_EQ(resolver.master("worker", 1), "worker1:2222");
  }
}

TEST(TFConfigClusterResolverTest, NullCountsAsNothing) {
  const auto resolver = tf_config(
      R"("cluster": {"worker": ["w:1"]}, "rpc_layer": null, "session_master": null, "environment": null)");
  EXPECT_EQ(resolver.rpc_layer(), "");
  EXPECT_EQ(resolver.master(), "");
  EXPECT_EQ(resolver.environment(), "");
}

TEST(TFConfigClusterResolverTest, WhatIsSetWinsEachOnItsOwn) {
  const std::string members =
      std::string(kCluster) + R"(, "task": {"type": "ps", "index": 1}, "rpc_layer": "grpc")";
  auto resolver = tf_config(members, {.task_type = "ps", .task_id = 0});
  EXPECT_EQ(resolver.master(), "grpc://ps0:2222");
  resolver.set_task_type("worker");
  resolver.set_task_id(1);
  resolver.set_rpc_layer("test");
  EXPECT_EQ(resolver.master(), "test://worker1:2222");
  const auto typed = tf_config(members, {.task_type = "worker", .environment = "cloud"});
  EXPECT_EQ(typed.master(), "grpc://worker1:2222");
  EXPECT_EQ(typed.environment(), "cloud");
  EXPECT_EQ(tf_config(members, {.task_id = 0}).master(), "grpc://ps0:2222");
}

TEST(TFConfigClusterResolverTest, ReadsTheProcessesEnvironment) {
  const char* before = std::getenv("TF_CONFIG");
  const std::string kept = before == nullptr ? "" : before;
  setenv("TF_CONFIG", R"({"cluster": {"worker": ["w:1"]}})", 1);
  EXPECT_EQ(TFConfigClusterResolver().cluster_spec(), ClusterSpec({{"worker", {"w:1"}}}));
  setenv("TF_CONFIG", "{", 1);
  EXPECT_THROW(TFConfigClusterResolver(), InvalidArgumentError);
  unsetenv("TF_CONFIG");
  EXPECT_TRUE(TFConfigClusterResolver().cluster_spec().empty());
  if (before != nullptr) setenv("TF_CONFIG", kept.c_str(), 1);
}

TEST(SimpleClusterResolverTest, SaysWhatItWasTold) {
  const ClusterSpec spec({{"ps", {"ps0:2222"}}, {"worker", {"w0:2222", "w1:2222"}}});
  const SimpleClusterResolver plain(spec);
  EXPECT_EQ(plain.cluster_spec(), spec);
  EXPECT_EQ(plain.master(), "");
  EXPECT_EQ(plain.task_type(), std::nullopt);
  EXPECT_EQ(plain.num_accelerators(), std::nullopt);
  const SimpleClusterResolver full(spec,
                                   {.master = "w0:2222",
                                    .task_type = "worker",
                                    .task_id = 1,
                                    .environment = "cloud",
                                    .num_accelerators = std::map<std::string, int>{{"GPU", 2}},
                                    .rpc_layer = "grpc"});
  EXPECT_EQ(full.master(), "grpc://w0:2222");
  EXPECT_EQ(full.master("worker", 1), "grpc://w1:2222");
  EXPECT_EQ(full.master("worker", 1, "test"), "test://w1:2222");
  EXPECT_EQ(full.task_type(), "worker");
  EXPECT_EQ(full.task_id(), 1);
  EXPECT_EQ(full.environment(), "cloud");
  EXPECT_EQ(full.num_accelerators()->at("GPU"), 2);
  EXPECT_EQ(full.rendezvous(), std::nullopt);
}

std::shared_ptr<SimpleClusterResolver> simple(ClusterSpec spec,
                                              const SimpleClusterResolverOptions& options = {}) {
  return std::make_shared<SimpleClusterResolver>(std::move(spec), options);
}

TEST(UnionResolverTest, ListsFollowEachOther) {
  const UnionResolver resolver(
      {simple(ClusterSpec({{"ps", {"p0:1", "p1:1"}}, {"worker", {"w0:1"}}})),
       simple(ClusterSpec({{"worker", {"w1:1", "w2:1"}}}))});
  EXPECT_EQ(resolver.cluster_spec(),
            ClusterSpec({{"ps", {"p0:1", "p1:1"}}, {"worker", {"w0:1", "w1:1", "w2:1"}}}));
  EXPECT_EQ(resolver.master("worker", 2), "w2:1");
}

TEST(UnionResolverTest, TasksOfASparseJobKeepTheirIndices) {
  const ClusterSpec sparse(ClusterSpec::Jobs{{"worker", {{1, "b:1"}, {3, "d:1"}}}});
  const ClusterSpec merged(ClusterSpec::Jobs{{"worker", {{0, "a:1"}, {1, "b:1"}, {3, "d:1"}}}});
  EXPECT_EQ(
      UnionResolver({simple(sparse), simple(ClusterSpec({{"worker", {"a:1"}}}))}).cluster_spec(),
      merged);
  EXPECT_EQ(thrown<InvalidArgumentError>([&] {
              UnionResolver({simple(sparse), simple(ClusterSpec({{"worker", {"a:1", "x:1"}}}))})
                  .cluster_spec();
            }),
            "UnionResolver: two resolvers have the task 1 of job 'worker': 'b:1' and 'x:1'");
}

TEST(UnionResolverTest, TheFirstSaysWhoThisIs) {
  UnionResolver resolver(
      {simple(ClusterSpec({{"worker", {"a:1"}}}), {.master = "a:1",
                                                   .task_type = "worker",
                                                   .task_id = 0,
                                                   .environment = "first",
                                                   .rpc_layer = "grpc"}),
       simple(ClusterSpec({{"ps", {"p:1"}}}),
              {.master = "p:1", .task_type = "ps", .task_id = 7, .environment = "second"})});
  EXPECT_EQ(resolver.task_type(), "worker");
  EXPECT_EQ(resolver.task_id(), 0);
  EXPECT_EQ(resolver.environment(), "first");
  EXPECT_EQ(resolver.master(), "grpc://a:1");
  EXPECT_EQ(resolver.master("ps", 0), "grpc://p:1");
  resolver.set_task_type("ps");
  resolver.set_rpc_layer("test");
  EXPECT_EQ(resolver.task_type(), "ps");
  EXPECT_EQ(resolver.master("ps", 0), "test://p:1");
  EXPECT_THROW(UnionResolver({}), InvalidArgumentError);
  EXPECT_THROW(UnionClusterResolver({nullptr}), InvalidArgumentError);
}

}  // namespace
}  // namespace cohort::distribute::cluster_resolver
