#include "cohort/keras/saving/compile_config.h"

#include "cohort/cluster/json_document.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/keras/optimizers/optimizer_config.h"

namespace cohort::internal {
namespace {

using keras::LossArgument;
using keras::MetricArgument;
using keras::MetricList;
using keras::PerOutput;

// One, a list or an object by outputs.
template <class T, class Write>
Json per_output_json(const PerOutput<T>& values, const Write& write) {
  if (values.one()) return write(*values.one());
  Json json = nullptr;
  for (const T& value : values.list()) json.push_back(write(value));
  for (const auto& [name, value] : values.named()) json[name] = write(value);
  return json;
}

Json loss_json(const LossArgument& argument) {
  const keras::losses::Loss loss = argument.loss();
  if (const auto config = loss.serialize()) return json_of(*config);
  throw UnimplementedError(str("the loss ", quoted(loss.name()), " is a function of the program"));
}

Json metric_json(const MetricArgument& argument) {
  if (!argument.is_object() && !argument.is_function()) return argument.name();
  if (argument.is_object()) {
    if (const auto config = argument.make().metric.serialize()) return json_of(*config);
  }
  throw UnimplementedError(
      str("the metric ", quoted(argument.name()), " is a function of the program"));
}

Json metrics_json(const MetricList& metrics) {
  const auto list_json = [](const MetricList::List& list) {
    Json json = Json::array();
    for (const MetricArgument& metric : list) json.push_back(metric_json(metric));
    return json;
  };
  if (!metrics.named().empty()) {
    Json json = Json::object();
    for (const auto& [name, list] : metrics.named()) json[name] = list_json(list);
    return json;
  }
  return metrics.list().empty() ? Json(nullptr) : list_json(metrics.list());
}

template <class T, class Read>
PerOutput<T> read_per_output(const Json& json, const Read& read) {
  if (json.is_null()) return {};
  const bool is_object = json.is_object() && !json.contains("class_name");
  if (is_object) {
    std::vector<std::pair<std::string, T>> named;
    for (const auto& [name, value] : json.items()) named.emplace_back(name, read(value));
    return PerOutput<T>::by_name(std::move(named));
  }
  if (json.is_array()) {
    std::vector<T> list;
    for (const Json& value : json) list.push_back(read(value));
    return PerOutput<T>::in_order(std::move(list));
  }
  return PerOutput<T>(read(json));
}

MetricList read_metrics_of(const Json& json, const std::string& where) {
  const auto read_list = [&](const Json& list) {
    MetricList::List metrics;
    if (!list.is_array()) {
      metrics.push_back(read_metric(list, where));
      return metrics;
    }
    for (const Json& metric : list) metrics.push_back(read_metric(metric, where));
    return metrics;
  };
  if (json.is_null()) return {};
  if (json.is_object() && !json.contains("class_name")) {
    MetricList::Named named;
    for (const auto& [name, list] : json.items()) named.emplace_back(name, read_list(list));
    return MetricList::by_name(std::move(named));
  }
  return read_list(json);
}

double read_number(const Json& json, const std::string& where) {
  double number = 0;
  read_field(json, number, where);
  return number;
}

}  // namespace

Json compile_config(const CompiledModel& compiled) {
  const keras::CompileOptions& options = compiled.options();
  const auto optimizer = compiled.optimizer().serialize();
  if (!optimizer) {
    throw UnimplementedError(str("the optimizer ", quoted(compiled.optimizer().name()),
                                 " or its schedule is of a class of the program"));
  }
  return {{"optimizer", json_of(*optimizer)},
          {"loss", per_output_json(options.loss, loss_json)},
          {"metrics", metrics_json(options.metrics)},
          {"loss_weights",
           per_output_json(options.loss_weights, [](double weight) { return Json(weight); })},
          {"weighted_metrics", metrics_json(options.weighted_metrics)},
          {"run_eagerly", options.run_eagerly ? Json(true) : Json(nullptr)},
          {"steps_per_execution", options.steps_per_execution},
          {"jit_compile", nullptr}};
}

keras::CompileOptions read_compile_config(const Json& json, const std::string& where) {
  if (!json.is_object()) throw_wrong_field(json, "an object", where);
  const auto part = [&](const char* key) { return json.value(key, Json(nullptr)); };
  const auto place = [&](const char* key) { return str(where, ": ", key); };
  keras::CompileOptions options;
  if (const Json optimizer = part("optimizer"); !optimizer.is_null()) {
    options.optimizer = read_optimizer(optimizer, place("optimizer"));
  }
  options.loss = read_per_output<LossArgument>(
      part("loss"), [&](const Json& loss) { return read_loss(loss, place("loss")); });
  options.metrics = read_metrics_of(part("metrics"), place("metrics"));
  options.weighted_metrics = read_metrics_of(part("weighted_metrics"), place("weighted_metrics"));
  options.loss_weights = read_per_output<double>(part("loss_weights"), [&](const Json& weight) {
    return read_number(weight, place("loss_weights"));
  });
  if (const Json steps = part("steps_per_execution"); !steps.is_null()) {
    read_field(steps, options.steps_per_execution, place("steps_per_execution"));
  }
  if (const Json eager = part("run_eagerly"); !eager.is_null()) {
    read_field(eager, options.run_eagerly, place("run_eagerly"));
  }
  return options;
}

}  // namespace cohort::internal
