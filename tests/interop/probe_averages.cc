#include <cohort/cohort.h>

#include <string>
#include <vector>

#include "probe.h"
#include "tensor_json.h"

namespace cohort::interop {
namespace {

// The children "0", "1", ... of a checkpoint's object "averages".
std::shared_ptr<train::TrackableList> list_of(const std::vector<Variable>& variables) {
  auto list = std::make_shared<train::TrackableList>();
  for (const Variable& variable : variables) {
    list->add(*variable.trackable(), variable.trackable());
  }
  return list;
}

}  // namespace

Json average_variables(const Json& request) {
  std::vector<Variable> variables;
  for (const Json& initial : request.at("initial")) {
    variables.emplace_back(tensor_of(initial),
                           VariableOptions{.name = "v" + std::to_string(variables.size())});
  }
  const Variable updates(0.0, {.name = "updates"});
  train::ExponentialMovingAverageOptions options;
  if (request.at("num_updates").get<bool>()) options.num_updates = updates;
  const train::ExponentialMovingAverage ema(request.at("decay").get<double>(), options);
  ema.apply(variables);
  const train::Checkpoint checkpoint({{"averages", list_of(ema.variables())}});
  if (request.contains("load")) {
    checkpoint.read(request.at("load").get<std::string>()).assert_consumed();
  }
  Json answer = {{"averages", Json::array()}, {"names", Json::array()}};
  for (const Json& step : request.at("steps")) {
    for (size_t i = 0; i < variables.size(); ++i) variables[i].assign(tensor_of(step.at(i)));
    updates.assign_add(1);
    ema.apply(variables);
    Json averages = Json::array();
    for (const Variable& variable : variables) {
      averages.push_back(json_of(ema.average(variable)->value()));
    }
    answer["averages"].push_back(averages);
  }
  for (const Variable& variable : variables) answer["names"].push_back(ema.average_name(variable));
  if (request.contains("save")) checkpoint.write(request.at("save").get<std::string>());
  return answer;
}

}  // namespace cohort::interop
