// Layers of Keras's configurations: what they compute, and what they write of themselves.
#include <ATen/ops/arange.h>
#include <cohort/cohort.h>

#include <string>
#include <vector>

#include "probe.h"
#include "tensor_json.h"

namespace cohort::interop {
namespace {

Json all_json(const std::vector<Tensor>& tensors) {
  Json json = Json::array();
  for (const Tensor& tensor : tensors) json.push_back(json_of(tensor));
  return json;
}

Json computed(const keras::layers::LayerHandle& layer, const Json& request) {
  const Tensor input = tensor_of(request.at("input"));
  layer(input);  // builds it
  std::vector<Tensor> weights;
  for (const Json& weight : request.at("weights")) weights.push_back(tensor_of(weight));
  layer.set_weights(weights);

  GradientTape tape;
  tape.watch(input);
  const Tensor output = layer(input, {.training = request.value("training", false)});
  const Tensor slopes = at::arange(output.numel(), output.options()).cos();
  std::vector<Tensor> sources = {input};
  for (const Variable& variable : layer.trainable_variables()) sources.push_back(variable.value());
  const auto gradients = tape.gradient((output * slopes.reshape(output.sizes())).sum(), sources,
                                       {.unconnected_gradients = UnconnectedGradients::ZERO});
  return {{"config", Json::parse(layer.get_config()->json())},
          {"output", json_of(output)},
          {"gradients", all_json(gradients)}};
}

}  // namespace

Json run_keras_layer(const Json& request) {
  try {
    const keras::layers::LayerHandle layer = keras::models::layer_from_config(
        request.at("layer").get<std::string>(), keras::Config::parse(request.at("config").dump()));
    return computed(layer, request);
  } catch (const Error& error) {
    return {{"error", code_name(error.code())}, {"text", error.what()}};
  }
}

Json constrain(const Json& request) {
  try {
    const keras::layers::LayerHandle layer = keras::models::layer_from_config(
        "Dense", keras::Config::parse(
                     Json{{"units", 1}, {"kernel_constraint", request.at("constraint")}}.dump()));
    const Json written = Json::parse(layer.get_config()->json()).at("kernel_constraint");
    const auto parts = written.at("config");
    const auto axis = [&] {
      const Json& given = parts.at("axis");
      return given.is_array() ? given.get<std::vector<int64_t>>()
                              : std::vector<int64_t>{given.get<int64_t>()};
    };
    const std::string name = written.at("class_name");
    namespace constraints = keras::constraints;
    const constraints::Constraint constraint =
        name == "MaxNorm"    ? constraints::MaxNorm(parts.at("max_value").get<double>(), axis())
        : name == "UnitNorm" ? constraints::Constraint(constraints::UnitNorm(axis()))
        : name == "MinMaxNorm"
            ? constraints::Constraint(constraints::MinMaxNorm({.min_value = parts.at("min_value"),
                                                               .max_value = parts.at("max_value"),
                                                               .rate = parts.at("rate"),
                                                               .axis = axis()}))
            : constraints::Constraint(name);
    return {{"config", written}, {"value", json_of(constraint(tensor_of(request.at("value"))))}};
  } catch (const Error& error) {
    return {{"error", code_name(error.code())}, {"text", error.what()}};
  }
}

}  // namespace cohort::interop
