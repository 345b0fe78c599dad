#include <cohort/core/error.h>
#include <cohort/data/dataset.h>
#include <cohort/keras/layers/preprocessing/discretization.h>
#include <cohort/keras/saving/models.h>
#include <cohort/train/checkpoint.h>

#include <string>

#include "probe.h"
#include "tensor_json.h"

namespace cohort::interop {
namespace {

namespace layers = keras::layers;

// Adapts, loads, saves; the boundaries afterwards.
Json learn(const layers::Discretization& layer, const Json& request) {
  if (request.contains("adapt")) {
    const Tensor data = tensor_of(request.at("adapt").at("data"));
    const auto batch = request.at("adapt").at("batch").get<int64_t>();
    if (request.at("adapt").at("as_dataset") == true) {
      layer.adapt(data::Dataset::from_tensor_slices(data).batch(batch));
    } else {
      layer.adapt(data, {.batch_size = batch});
    }
  }
  train::Checkpoint checkpoint({{"layer", layer}});
  if (request.contains("load")) {
    checkpoint.restore(request.at("load").get<std::string>()).assert_existing_objects_matched();
  }
  if (request.contains("save")) checkpoint.write(request.at("save").get<std::string>());
  return layer.bin_boundaries();
}

Json use(const layers::LayerHandle& layer, const Json& request) {
  keras::CallOptions options;
  if (request.contains("training")) options.training = request.at("training").get<bool>();
  Json answer = {{"config", Json::parse(layer.get_config()->json())}, {"outputs", Json::array()}};
  for (const Json& input : request.at("inputs")) {
    try {
      answer["outputs"].push_back(json_of(layer(structure_of(input), options)));
    } catch (const Error& error) {
      answer["outputs"].push_back({{"error", code_name(error.code())}, {"text", error.what()}});
    }
  }
  return answer;
}

// layer_from_config gives a handle of any layer, which cannot adapt.
layers::Discretization discretization(const keras::Config& config) {
  const Json json = Json::parse(config.json());
  layers::DiscretizationOptions options;
  if (!json.at("num_bins").is_null()) options.num_bins = json.at("num_bins").get<int64_t>();
  options.epsilon = json.at("epsilon").get<double>();
  options.output_mode = json.at("output_mode").get<std::string>();
  options.name = json.at("name").get<std::string>();
  return layers::Discretization(options);
}

}  // namespace

Json preprocess(const Json& request) {
  try {
    const layers::LayerHandle layer = keras::models::layer_from_config(
        request.at("layer").get<std::string>(), keras::Config::parse(request.at("config").dump()));
    const bool learns = request.contains("adapt") || request.contains("load");
    if (!learns) return use(layer, request);
    const layers::Discretization bins = discretization(*layer.get_config());
    const Json boundaries = learn(bins, request);
    Json answer = use(bins, request);
    answer["boundaries"] = boundaries;
    return answer;
  } catch (const Error& error) {
    return {{"error", code_name(error.code())}, {"text", error.what()}};
  }
}

}  // namespace cohort::interop
