// Row 25 of the fault matrix: each wrong TF_CONFIG is one line that names the JSON path, before any
// socket is opened.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cohort/cluster/cluster_check.h"
#include "cohort/cluster/resolvers/tf_config_cluster_resolver.h"
#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"

namespace cohort::distribute::cluster_resolver {
namespace {

struct Broken {
  std::string text;
  std::string message;  // how it begins, after "TF_CONFIG: "
};

// Of a cluster of these members, in which this is worker 0.
Broken of_cluster(const std::string& members, const std::string& message) {
  return {R"({"cluster": {)" + members + R"(}, "task": {"type": "worker", "index": 0}})", message};
}

Broken of_worker(const std::string& address, const std::string& message) {
  return of_cluster(R"("worker": ["a:1", ")" + address + R"("])",
                    "cluster.worker[1]: '" + address + "' " + message);
}

Broken of_task(const std::string& task, const std::string& message) {
  return {R"({"cluster": {"worker": ["a:1", "b:1"]}, "task": )" + task + "}", message};
}

std::vector<Broken> no_json() {
  return {
      {"", "top level: is empty"},
      {"   ", "top level: is empty"},
      {"worker", "top level: is no JSON"},
      {"{'cluster': {}}", "top level: is no JSON"},
      {R"({"cluster": {"worker": ["a:1",]}})", "cluster.worker[1]: is no JSON"},
      {R"({"cluster": {"worker": ["a:1"]})", "cluster: is no JSON"},
      {std::string("{}\0{}", 5), "top level: has a NUL byte"},
      {"\xff\xfe{}", "top level: is no JSON"},
      {"[]", "top level: must be an object, is a list"},
      {"\"{}\"", "top level: must be an object, is a string"},
      {"{\"cluster\": \"" + std::string(1 << 20, 'x') + "\"}", "top level: has 1048591 bytes"},
      {"{\"x\": " + std::string(1000, '[') + std::string(1000, ']') + "}",
       "x[0][0][0][0][0][0][0][0][0][0][0][0][0][0][0]: is nested deeper than 16 levels"},
  };
}

std::vector<Broken> wrong_clusters() {
  return {
      {R"({"cluster": ["a:1"]})", "cluster: must be an object of jobs, is a list"},
      {R"({"cluster": {}, "task": {"type": "worker", "index": 0}})", "cluster: is missing"},
      {"{}", "cluster: is empty"},
      of_cluster(R"("worker": "a:1")", "cluster.worker: must be a list of addresses, is a string"),
      of_cluster(R"("worker": ["a:1", 2222])", "cluster.worker[1]: must be a string, is a number"),
      of_cluster(R"("worker": [])", "cluster.worker: has no tasks"),
      of_cluster(R"("worker": ["a:1"], "worker": ["b:1"])", "cluster.worker: is there twice"),
      of_cluster(R"("worker": {"0": "a:1", "2": "b:1"})", "cluster.worker[1]: is missing"),
      of_cluster(R"("worker": {"zero": "a:1"})", "cluster.worker.zero: must be a task's index"),
      of_cluster(R"("worker": ["a:1"], "Worker 2": ["b:1"])",
                 "cluster['Worker 2']: is no known job; jobs are chief, worker, ps and evaluator"),
      of_cluster(R"("worker": ["a:1"], "chief": ["b:1", "c:1"])",
                 "cluster.chief: has 2 tasks; there must be at most one 'chief'"),
      of_cluster(R"("worker": ["a:1", "a:1"])",
                 "cluster.worker[1]: 'a:1' is the address of cluster.worker[0], too"),
      of_cluster(R"("ps": ["[::1]:1"], "worker": ["[0::1]:1"])",
                 "cluster.worker[0]: '[0::1]:1' is the address of cluster.ps[0], too"),
  };
}

std::vector<Broken> wrong_addresses() {
  return {
      of_worker("", "is empty"),
      of_worker("b", "has no port"),
      of_worker("b:0", "has the port '0'"),
      of_worker("b:70000", "has the port '70000'"),
      of_worker("b:http", "has the port 'http'"),
      of_worker("fe80::1:2222", "is an IPv6 address without brackets"),
      of_worker("[::1", "has a '[' without ']'"),
      of_worker("10.0.0.300:1", "has a host that ends in a number and is no IPv4 address"),
      of_worker("grpc://b:1", "has a scheme"),
      of_worker("b :1", "has a blank"),
      of_worker("0.0.0.0:1", "is no address that other tasks can reach"),
      of_worker("unix:b", "must have an absolute path"),
      {R"({"cluster": {"worker": ["b\u0000:1"]}, "task": {"type": "worker", "index": 0}})",
       "cluster.worker[0]: 'b\\x00:1' has a NUL byte"},
      {R"({"cluster": {"worker": [")" + std::string(900'000, 'b') +
           R"(:1"]}, "task": {"type": "worker", "index": 0}})",
       "cluster.worker[0]: '" + std::string(80, 'b') + "'... has a host of more than 253"},
  };
}

std::vector<Broken> wrong_tasks() {
  return {
      {R"({"cluster": {"worker": ["a:1"]}})", "task: is missing"},
      of_task("[]", "task: must be an object, is a list"),
      of_task("{}", "task: is missing"),
      of_task(R"({"type": "worker"})", "task.index: is missing"),
      of_task(R"({"index": 0})", "task.type: is missing"),
      of_task(R"({"type": "worker", "index": 2})", "task.index: is 2; job 'worker' has 2 tasks"),
      of_task(R"({"type": "worker", "index": -1})", "task.index: is -1"),
      of_task(R"({"type": "worker", "index": "first"})", "task.index: must be a task's index"),
      of_task(R"({"type": "worker", "index": 99999999999})", "task.index: must be a task's index"),
      of_task(R"({"type": "worker", "index": null})",
              "task.index: must be a task's index, is null"),
      of_task(R"({"type": ["worker"], "index": 0})", "task.type: must be a job's name, is a list"),
      of_task(R"({"type": "ps", "index": 0})", "task.type: 'ps' is no job of the cluster"),
      of_task(R"({"type": "boss\n", "index": 0})", "task.type: 'boss\\n' is no known job"),
  };
}

void expect_one_line(const Broken& broken) {
  const std::string message = cohort::thrown<InvalidArgumentError>([&] {
    internal::check_cluster(
        TFConfigClusterResolver({.variables = Variables{{"TF_CONFIG", broken.text}}}));
  });
  EXPECT_THAT(message, ::testing::StartsWith("TF_CONFIG: " + broken.message));
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  EXPECT_LT(message.size(), 400u) << message;
}

TEST(BrokenTfConfigTest, EachIsOneLineThatNamesItsPath) {
  size_t count = 0;
  for (const auto& group : {no_json(), wrong_clusters(), wrong_addresses(), wrong_tasks()}) {
    for (const Broken& broken : group) expect_one_line(broken);
    count += group.size();
  }
  EXPECT_GE(count, 40u);
}

TEST(BrokenTfConfigTest, AnEmptyClusterMayTrainAlone) {
  const TFConfigClusterResolver resolver({.variables = Variables{{"TF_CONFIG", "{}"}}});
  EXPECT_EQ(internal::check_cluster(resolver, true).self, std::nullopt);
}

}  // namespace
}  // namespace cohort::distribute::cluster_resolver
