#include <ATen/ops/sparse_coo_tensor.h>
#include <cohort/cohort.h>

#include <string>
#include <vector>

#include "optimizer_json.h"
#include "probe.h"
#include "tensor_json.h"

namespace cohort::interop {
namespace {

Tensor gradient_of(const Json& json, const Variable& variable) {
  if (!json.contains("ids")) return tensor_of(json);
  return at::sparse_coo_tensor(tensor_of(json.at("ids")).unsqueeze(0), tensor_of(json.at("rows")),
                               variable.shape());
}

}  // namespace

Json apply_optimizer(const Json& request) {
  const auto optimizer = make_optimizer(request.at("optimizer"), request.at("options"));
  std::vector<Variable> variables;
  for (const Json& initial : request.at("initial")) variables.emplace_back(tensor_of(initial));
  std::vector<Variable> excluded;
  for (const size_t i : request.value("excluded", std::vector<size_t>())) {
    excluded.push_back(variables[i]);
  }
  if (!excluded.empty()) optimizer.exclude_from_weight_decay(excluded);
  Json answer = {{"values", Json::array()}};
  for (const Json& step : request.at("gradients")) {
    keras::optimizers::GradientsAndVariables gradients;
    for (size_t i = 0; i < variables.size(); ++i) {
      gradients.emplace_back(gradient_of(step.at(i), variables[i]), variables[i]);
    }
    optimizer.apply_gradients(gradients);
    Json values = Json::array();
    for (const Variable& variable : variables) values.push_back(json_of(variable.value()));
    answer["values"].push_back(values);
  }
  return answer;
}

Json scale_losses(const Json& request) {
  const keras::mixed_precision::LossScaleOptimizer optimizer(
      make_optimizer(request.at("optimizer"), request.at("options")),
      {.initial_scale = request.at("initial_scale").get<double>(),
       .dynamic_growth_steps = request.at("growth_steps").get<int64_t>()});
  const Variable w(tensor_of(request.at("initial")), {.name = "w"});
  const train::Checkpoint checkpoint({{"optimizer", optimizer}, {"w", w}});
  if (request.contains("load")) checkpoint.read(request.at("load").get<std::string>());
  Json answer = {{"steps", Json::array()}};
  for (const Json& slope : request.at("slopes")) {
    GradientTape tape;
    optimizer.minimize((w.value() * tensor_of(slope)).sum(), {w}, tape);
    answer["steps"].push_back({{"value", json_of(w.value())},
                               {"scale", optimizer.loss_scale().item<double>()},
                               {"counter", optimizer.dynamic_counter().value().item<int64_t>()},
                               {"iterations", optimizer.iterations().value().item<int64_t>()},
                               {"skipped", optimizer.skipped_updates()}});
  }
  if (request.contains("save")) checkpoint.write(request.at("save").get<std::string>());
  return answer;
}

Json compute_learning_rates(const Json& request) {
  const auto learning_rate = make_learning_rate(request.at("learning_rate"));
  std::vector<double> rates;
  for (const int64_t iteration : request.at("iterations").get<std::vector<int64_t>>()) {
    rates.push_back(learning_rate.schedule()->at(iteration));
  }
  return {{"rates", rates}};
}

}  // namespace cohort::interop
