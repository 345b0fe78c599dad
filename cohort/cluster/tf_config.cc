#include "cohort/cluster/tf_config.h"

#include <cmath>
#include <cstdint>

#include "cohort/cluster/config_error.h"
#include "cohort/cluster/json_document.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

using Json = nlohmann::json;
constexpr std::string_view kSource = "TF_CONFIG";
constexpr JsonLimits kLimits{.source = kSource, .bytes = 1'000'000, .depth = 16};

[[noreturn]] void fail_at(std::string_view path, std::string_view problem) {
  throw_config_error(kSource, path, problem);
}

[[noreturn]] void fail_kind(std::string_view path, std::string_view wanted, const Json& value) {
  fail_at(path, str("must be ", wanted, ", is ", json_kind(value)));
}

// The member of an object, or null.
const Json* find(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

int parse_index(const std::string& path, std::string_view text) {
  const auto index = parse_number<int32_t>(text);
  if (!index) fail_at(path, str("must be a task's index, is ", quoted_start(text)));
  if (*index < 0) fail_at(path, str("is ", *index, "; indices begin at 0"));
  return *index;
}

int read_index(const std::string& path, const Json& value) {
  if (value.is_string()) return parse_index(path, value.get_ref<const std::string&>());
  // Some writers of JSON have only floating numbers.
  if (value.is_number_integer() || value.is_number_float()) {
    const auto number = value.get<double>();
    constexpr double kExact = 1e15;
    if (std::abs(number) < kExact && number == std::trunc(number)) {
      return parse_index(path, decimal_digits(static_cast<int64_t>(number)));
    }
  }
  if (value.is_number()) return parse_index(path, value.dump());
  fail_kind(path, "a task's index", value);
}

std::string read_string(const std::string& path, const Json& value) {
  if (!value.is_string()) fail_kind(path, "a string", value);
  return value.get<std::string>();
}

// The text of a member; nullopt if it is missing or null, as in TensorFlow.
std::optional<std::string> read_member(const Json& object, const char* key) {
  const Json* value = find(object, key);
  if (value == nullptr || value->is_null()) return std::nullopt;
  return read_string(key, *value);
}

// ["host:port", ...] or {"0": "host:port", ...}.
train::ClusterSpec::Tasks read_job(const std::string& path, const Json& value) {
  train::ClusterSpec::Tasks tasks;
  if (value.is_array()) {
    for (const Json& address : value) {
      const int index = static_cast<int>(tasks.size());
      tasks.emplace(index, read_string(path + json_element(index), address));
    }
  } else if (value.is_object()) {
    for (const auto& [key, address] : value.items()) {
      const std::string place = path + json_member(key);
      const bool added = tasks.emplace(parse_index(place, key), read_string(place, address)).second;
      if (!added) fail_at(place, "gives a task of this index a second time");
    }
  } else {
    fail_kind(path, "a list of addresses", value);
  }
  return tasks;
}

train::ClusterSpec read_cluster(const Json& value) {
  if (!value.is_object()) fail_kind("cluster", "an object of jobs", value);
  train::ClusterSpec::Jobs jobs;
  for (const auto& [job, tasks] : value.items()) {
    const std::string path = "cluster" + json_member(job);
    if (job.empty()) fail_at(path, "a job has an empty name");
    jobs.emplace(job, read_job(path, tasks));
  }
  return train::ClusterSpec(std::move(jobs));
}

void read_task(const Json& value, TfConfig& config) {
  if (!value.is_object()) fail_kind("task", "an object", value);
  if (const Json* type = find(value, "type")) {
    if (!type->is_string() && !type->is_number_integer()) {
      fail_kind("task.type", "a job's name", *type);
    }
    config.task_type = type->is_string() ? type->get<std::string>() : type->dump();
  }
  if (const Json* index = find(value, "index")) {
    config.task_index = read_index("task.index", *index);
  }
}

Json to_json(const train::ClusterSpec& spec) {
  Json cluster = Json::object();
  for (const auto& [job, tasks] : spec.as_dict()) {
    const bool dense =
        !tasks.empty() && tasks.rbegin()->first == static_cast<int>(tasks.size()) - 1;
    Json& entry = cluster[job] = dense || tasks.empty() ? Json::array() : Json::object();
    for (const auto& [index, address] : tasks) {
      if (dense) {
        entry.push_back(address);
      } else {
        entry[decimal_digits(index)] = address;
      }
    }
  }
  return cluster;
}

}  // namespace

TfConfig parse_tf_config(std::string_view text) {
  const Json document = parse_json(text, kLimits);
  if (!document.is_object()) fail_kind("top level", "an object", document);
  TfConfig config;
  if (const Json* cluster = find(document, "cluster")) config.cluster = read_cluster(*cluster);
  if (const Json* task = find(document, "task")) read_task(*task, config);
  config.rpc_layer = read_member(document, "rpc_layer");
  config.session_master = read_member(document, "session_master");
  config.environment = read_member(document, "environment");
  return config;
}

std::string print_tf_config(const TfConfig& config) {
  Json document = Json::object();
  const auto set = [](Json& object, const char* key, const auto& value) {
    if (value) object[key] = *value;
  };
  if (!config.cluster.empty()) document["cluster"] = to_json(config.cluster);
  Json task = Json::object();
  set(task, "type", config.task_type);
  set(task, "index", config.task_index);
  if (!task.empty()) document["task"] = std::move(task);
  set(document, "rpc_layer", config.rpc_layer);
  set(document, "session_master", config.session_master);
  set(document, "environment", config.environment);
  try {
    return document.dump();
  } catch (const Json::exception&) {
    throw InvalidArgumentError("TF_CONFIG cannot be written: it holds text that is not UTF-8");
  }
}

}  // namespace cohort::internal
