#include "cohort/cluster/tf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"

namespace cohort::internal {
namespace {

using ::testing::Eq;
using ::testing::Optional;

constexpr char kConfig[] = R"({
  "cluster": {"ps": ["ps0:2222", "ps1:2222"], "worker": ["w0:2222", "w1:2222", "w2:2222"]},
  "task": {"type": "ps", "index": 0}, "rpc_layer": "grpc", "environment": "cloud"})";

TEST(TfConfigTest, HasAClusterAndATask) {
  const TfConfig config = parse_tf_config(kConfig);
  EXPECT_EQ(config.cluster, train::ClusterSpec({{"ps", {"ps0:2222", "ps1:2222"}},
                                                {"worker", {"w0:2222", "w1:2222", "w2:2222"}}}));
  EXPECT_THAT(config.task_type, Optional(Eq("ps")));
  EXPECT_THAT(config.task_index, Optional(0));
  EXPECT_THAT(config.rpc_layer, Optional(Eq("grpc")));
  EXPECT_THAT(config.environment, Optional(Eq("cloud")));
  EXPECT_EQ(config.session_master, std::nullopt);
}

TEST(TfConfigTest, IsReadAsTensorFlowReadsIt) {
  EXPECT_EQ(parse_tf_config("{}"), TfConfig{});
  EXPECT_EQ(parse_tf_config(R"({"cluster": {}, "task": {}})"), TfConfig{});
  EXPECT_THAT(parse_tf_config(R"({"task": {"type": 123456}})").task_type, Optional(Eq("123456")));
  EXPECT_THAT(parse_tf_config(R"({"task": {"index": "1"}})").task_index, Optional(1));
  EXPECT_THAT(parse_tf_config(R"({"task": {"index": 2.0}})").task_index, Optional(2));
  EXPECT_EQ(parse_tf_config(R"({"cluster": {"ps": {"0": "a:1", "3": "b:1"}}})").cluster,
            train::ClusterSpec(train::ClusterSpec::Jobs{{"ps", {{0, "a:1"}, {3, "b:1"}}}}));
  // Vertex AI and others say more than we know.
  EXPECT_EQ(parse_tf_config(R"({"job": {"args": [1, {"deep": [[[[]]]]}]}, "trial": null})"),
            TfConfig{});
}

TEST(TfConfigTest, IsPrintedAsItIsRead) {
  for (const std::string& text :
       {std::string(kConfig), std::string("{}"), std::string(R"({"cluster": {"worker": []}})"),
        std::string(R"({"cluster": {"ps": {"0": "a:1", "12": "b:1"}}, "session_master": ""})")}) {
    const TfConfig config = parse_tf_config(text);
    EXPECT_EQ(parse_tf_config(print_tf_config(config)), config) << text;
  }
  EXPECT_EQ(print_tf_config({.cluster = train::ClusterSpec({{"worker", {"a:1"}}}),
                             .task_type = "worker",
                             .task_index = 0,
                             .rpc_layer = {},
                             .session_master = {},
                             .environment = {}}),
            R"({"cluster":{"worker":["a:1"]},"task":{"index":0,"type":"worker"}})");
  EXPECT_THROW(print_tf_config({.cluster = {},
                                .task_type = "\xff",
                                .task_index = {},
                                .rpc_layer = {},
                                .session_master = {},
                                .environment = {}}),
               InvalidArgumentError);
}

TEST(TfConfigTest, AMistakeIsOneLineWithItsPath) {
  const struct {
    std::string text;
    std::string message;
  } kMistakes[] = {
      {"", "TF_CONFIG: top level: is empty, which is no JSON; write {}"},
      {"worker", "TF_CONFIG: top level: is no JSON near byte 0"},
      {"[]", "TF_CONFIG: top level: must be an object, is a list"},
      {"{\"cluster\": {\"worker\": [\"a:1\" \"b:1\"]}}",
       "TF_CONFIG: cluster.worker[1]: is no JSON near byte 34"},
      {"{\"task\": {\"type\": 'ps'}}", "TF_CONFIG: task.type: is no JSON near byte 18"},
      {std::string("{}\0", 3), "TF_CONFIG: top level: has a NUL byte at byte 2"},
      {R"({"cluster": 3})", "TF_CONFIG: cluster: must be an object of jobs, is a number"},
      {R"({"cluster": null})", "TF_CONFIG: cluster: must be an object of jobs, is null"},
      {R"({"cluster": {"worker": "a:1"}})",
       "TF_CONFIG: cluster.worker: must be a list of addresses, is a string"},
      {R"({"cluster": {"worker": ["a:1", 2]}})",
       "TF_CONFIG: cluster.worker[1]: must be a string, is a number"},
      {R"({"cluster": {"worker": {"x": "a:1"}}})",
       "TF_CONFIG: cluster.worker.x: must be a task's index, is 'x'"},
      {R"({"cluster": {"worker": {"1": "a:1", "01": "b:1"}}})",
       "TF_CONFIG: cluster.worker.1: gives a task of this index a second time"},
      {R"({"cluster": {"worker": [], "worker": []}})", "TF_CONFIG: cluster.worker: is there twice"},
      {R"({"cluster": {"a b": [false]}})",
       "TF_CONFIG: cluster['a b'][0]: must be a string, is a boolean"},
      {R"({"cluster": {"": ["a:1"]}})", "TF_CONFIG: cluster['']: a job has an empty name"},
      {R"({"task": []})", "TF_CONFIG: task: must be an object, is a list"},
      {R"({"task": {"type": null}})", "TF_CONFIG: task.type: must be a job's name, is null"},
      {R"({"task": {"index": -1}})", "TF_CONFIG: task.index: is -1; indices begin at 0"},
      {R"({"task": {"index": "one"}})", "TF_CONFIG: task.index: must be a task's index, is 'one'"},
      {R"({"task": {"index": 1.5}})", "TF_CONFIG: task.index: must be a task's index, is '1.5'"},
      {R"({"task": {"index": 18446744073709551615}})",
       "TF_CONFIG: task.index: must be a task's index, is '18446744073709551615'"},
      {R"({"task": {"index": true}})",
       "TF_CONFIG: task.index: must be a task's index, is a boolean"},
      {R"({"task": {"index": 1e999}})", "TF_CONFIG: task.index: has a number that is too large"},
      {R"({"rpc_layer": 1})", "TF_CONFIG: rpc_layer: must be a string, is a number"},
      {"{\"x\": " + std::string(100, '[') + std::string(100, ']') + "}",
       "TF_CONFIG: x" +
           [] {
             std::string path;
             for (int i = 0; i < 15; ++i) path += "[0]";
             return path;
           }() +
           ": is nested deeper than 16 levels"},
      {std::string(1'000'001, ' '),
       "TF_CONFIG: top level: has 1000001 bytes; at most 1000000 are read"},
  };
  for (const auto& [text, message] : kMistakes) {
    EXPECT_EQ(thrown<InvalidArgumentError>([&, &text = text] { parse_tf_config(text); }), message);
  }
}

}  // namespace
}  // namespace cohort::internal
