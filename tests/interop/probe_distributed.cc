#include <cohort/core/structure/device.h>
#include <cohort/data/sharding/batch_sizes.h>
#include <cohort/distribute/input/distributed_dataset.h>
#include <cohort/distribute/strategies/get_distributed_dataset.h>
#include <cohort/distribute/strategies/mirrored_strategy.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "pipeline_json.h"
#include "probe.h"

namespace cohort::interop {
namespace {

constexpr int kDevices = 12;

std::vector<std::string> cpus(int first, int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back("CPU:" + std::to_string(first + i));
  return names;
}

data::AutoShardPolicy policy_of(const std::string& name) {
  static const std::map<std::string, data::AutoShardPolicy> policies = {
      {"OFF", data::AutoShardPolicy::OFF},
      {"AUTO", data::AutoShardPolicy::AUTO},
      {"FILE", data::AutoShardPolicy::FILE},
      {"DATA", data::AutoShardPolicy::DATA}};
  return policies.at(name);
}

}  // namespace

Json read_distributed(const Json& request) {
  const int workers = request.at("workers"), replicas = request.at("replicas_per_worker");
  config::set_logical_device_configuration("CPU", kDevices);
  const distribute::MirroredStrategy strategy(cpus(0, workers * replicas));
  std::vector<distribute::InputWorker> pairs;
  for (int worker = 0; worker < workers; ++worker) {
    const auto fed = cpus(worker * replicas, replicas);
    pairs.push_back({.input_device = fed.front(), .compute_devices = fed});
  }
  data::Options options;
  options.experimental_distribute.auto_shard_policy = policy_of(request.at("policy"));
  const auto dataset = distribute::get_distributed_dataset(
      build_pipeline(request.at("pipeline")).with_options(options), distribute::InputWorkers(pairs),
      strategy);

  Json answer = {{"steps", Json::array()}, {"error", nullptr}};
  try {
    for (const auto& batch : dataset) {
      Json& step = answer["steps"].emplace_back(Json::array());
      for (const Structure& piece : batch.values()) step.push_back(element_json(piece));
    }
  } catch (const Error& error) {
    answer["error"] = code_name(error.code());
  }
  return answer;
}

Json divide_batch(const Json& request) {
  const int64_t batch = request.at("global_batch_size"), workers = request.at("workers");
  Json answer = Json::array();
  for (int64_t worker = 0; worker < workers; ++worker) {
    answer.push_back(
        data::batch_sizes_for_worker(batch, workers, request.at("replicas_per_worker"), worker));
  }
  return {{"sizes", answer}};
}

}  // namespace cohort::interop
