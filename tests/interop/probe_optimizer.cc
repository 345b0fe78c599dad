#include <cohort/core/error.h>
#include <cohort/optim/adam.h>
#include <cohort/optim/rmsprop.h>
#include <cohort/optim/sgd.h>

#include <memory>
#include <string>
#include <vector>

#include "probe.h"

namespace cohort::interop {
namespace {

std::unique_ptr<const optim::UpdateRule> make_rule(const std::string& name, const Json& options) {
  if (name == "SGD") {
    return optim::make_sgd(
        {.momentum = options.value("momentum", 0.0), .nesterov = options.value("nesterov", false)});
  }
  if (name == "Adam") {
    const optim::AdamOptions defaults;
    return optim::make_adam({.beta_1 = options.value("beta_1", defaults.beta_1),
                             .beta_2 = options.value("beta_2", defaults.beta_2),
                             .epsilon = options.value("epsilon", defaults.epsilon),
                             .amsgrad = options.value("amsgrad", false)});
  }
  if (name == "RMSprop") {
    const optim::RmspropOptions defaults;
    return optim::make_rmsprop({.rho = options.value("rho", defaults.rho),
                                .momentum = options.value("momentum", 0.0),
                                .epsilon = options.value("epsilon", defaults.epsilon),
                                .centered = options.value("centered", false)});
  }
  throw InvalidArgumentError("no optimizer '" + name + "'");
}

template <class Scalar>
Json apply(const Json& request, DType dtype) {
  const auto rule = make_rule(request.at("optimizer"), request.at("options"));
  const double learning_rate = request.at("learning_rate");
  auto values = request.at("initial").get<std::vector<Scalar>>();

  std::vector<std::vector<Scalar>> slots;
  std::vector<void*> slot_pointers;
  for (const auto& spec : rule->slots()) {
    slots.emplace_back(values.size(), static_cast<Scalar>(spec.initial_value));
  }
  for (auto& slot : slots) slot_pointers.push_back(slot.data());

  Json answer = {{"values", Json::array()}};
  int64_t iteration = 0;
  for (const Json& step : request.at("gradients")) {
    const auto gradient = step.get<std::vector<Scalar>>();
    rule->update(rule->prepare(learning_rate, iteration++),
                 {.param = values.data(),
                  .slots = slot_pointers.data(),
                  .gradient = gradient.data(),
                  .size = static_cast<int64_t>(values.size()),
                  .dtype = dtype});
    answer["values"].push_back(values);
  }
  return answer;
}

}  // namespace

Json apply_optimizer(const Json& request) {
  return request.at("dtype") == "float64" ? apply<double>(request, float64)
                                          : apply<float>(request, float32);
}

}  // namespace cohort::interop
