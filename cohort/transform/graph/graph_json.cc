// A graph as JSON: a list of steps that name each other by their numbers.
#include <algorithm>
#include <optional>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/keras/base/config_json.h"
#include "cohort/transform/analysis/analyses.h"
#include "cohort/transform/graph/graph.h"
#include "cohort/transform/graph/make_node.h"
#include "cohort/transform/graph/operations.h"

namespace cohort::internal {
namespace {

constexpr int kGraphVersion = 1;

Json type_json(const ColumnType& type) {
  return {{"dtype", type.dtype.name()}, {"ragged", type.is_ragged()}, {"shape", type.shape}};
}

Json attributes_json(const Attributes& attributes) {
  Json json = Json::object();
  for (const auto& [name, value] : attributes) {
    std::visit([&, &name = name](const auto& v) { json[name] = v; }, value);
  }
  return json;
}

// Reads numbers of steps, which must lie before the reader.
class StepReader {
 public:
  StepReader(const Json& json, std::string where) : json_(json), where_(std::move(where)) {}

  std::vector<int> inputs(size_t before) const {
    std::vector<int> numbers;
    for (const Json& number : list("inputs")) numbers.push_back(index(number, before, "step"));
    return numbers;
  }
  int index(const Json& json, size_t before, std::string_view what) const {
    const int64_t number = integer_of(json, where_);
    if (number < 0 || static_cast<size_t>(number) >= before) {
      throw InvalidArgumentError(str(where_, ": there is no ", what, ' ', number, " before it"));
    }
    return static_cast<int>(number);
  }
  const Json& list(const char* key) const {
    const Json& value = member_of(json_, key, where_);
    if (!value.is_array())
      throw InvalidArgumentError(str(where_, ": ", quoted(key), " is no list"));
    return value;
  }
  const Json& object(const char* key) const {
    const Json& value = member_of(json_, key, where_);
    if (!value.is_object()) {
      throw InvalidArgumentError(str(where_, ": ", quoted(key), " is no object"));
    }
    return value;
  }
  std::string text(const char* key) const { return string_member(json_, key, where_); }
  bool has(const char* key) const { return json_.contains(key); }
  const std::string& where() const { return where_; }

 private:
  const Json& json_;
  std::string where_;
};

ColumnType read_type(const Json& json, const std::string& where) {
  const StepReader reader(json, where);
  ColumnType type;
  const std::string dtype = reader.text("dtype");
  if (dtype == "string") {
    type.dtype = cohort::string;
  } else {
    type.dtype = dtype_of_name(dtype);
  }
  const Json& ragged = member_of(json, "ragged", where);
  if (!ragged.is_boolean()) throw InvalidArgumentError(str(where, ": 'ragged' is no bool"));
  if (ragged.get<bool>()) type.kind = ColumnKind::kRagged;
  for (const Json& size : reader.list("shape")) {
    const int64_t number = integer_of(size, where);
    if (number < kUnknownDim) throw InvalidArgumentError(str(where, ": a size of ", number));
    type.shape.push_back(number);
  }
  return type;
}

Attributes read_attributes(const Json& json, const std::string& where) {
  Attributes attributes;
  for (const auto& [name, value] : json.items()) {
    if (value.is_boolean()) {
      attributes.emplace_back(name, value.get<bool>());
    } else if (value.is_number_integer()) {
      attributes.emplace_back(name, integer_of(value, where));
    } else if (value.is_number()) {
      attributes.emplace_back(name, value.get<double>());
    } else if (value.is_string()) {
      attributes.emplace_back(name, value.get<std::string>());
    } else {
      std::vector<std::string> texts;
      for (const Json& text : value) {
        if (!text.is_string()) throw InvalidArgumentError(str(where, ": ", quoted(name)));
        texts.push_back(text.get<std::string>());
      }
      attributes.emplace_back(name, std::move(texts));
    }
  }
  return attributes;
}

Json named_json(const std::vector<std::pair<std::string, int>>& named) {
  Json list = Json::array();
  for (const auto& [name, step] : named) list.push_back({{"name", name}, {"step", step}});
  return list;
}

class Reader {
 public:
  Reader(const Json& json, std::string where) : json_(json), where_(std::move(where)) {}

  TransformGraph read() {
    const StepReader all(json_, where_);
    if (const int64_t version = integer_of(member_of(json_, "version", where_), where_);
        version != kGraphVersion) {
      throw InvalidArgumentError(str(where_, ": it is of version ", version,
                                     ", but this Cohort reads version ", kGraphVersion));
    }
    for (const Json& column : all.list("columns")) {
      const StepReader reader(column, str(where_, ": column ", graph_.columns.size()));
      graph_.columns.emplace_back(
          reader.text("name"),
          read_type(member_of(column, "type", reader.where()), reader.where()));
    }
    analyses_ = &all.list("analyses");
    calls_.resize(analyses_->size());
    for (const Json& step : all.list("steps")) read_step(step);
    while (graph_.analyses.size() < analyses_->size()) add_analysis();
    graph_.outputs = read_named(all.list("outputs"), "output");
    graph_.statistics = read_named(all.list("statistics"), "statistic");
    return std::move(graph_);
  }

 private:
  void read_step(const Json& json) {
    const StepReader reader(json, str(where_, ": step ", graph_.steps.size()));
    const std::string operation = reader.text("operation");
    keras::Config attributes;
    if (reader.has("attributes")) attributes = ConfigData::config_of(reader.object("attributes"));
    TransformGraph::Step step;
    if (reader.has("inputs")) step.inputs = reader.inputs(graph_.steps.size());
    TransformNodes nodes;
    for (const int input : step.inputs) {
      nodes.push_back(graph_.steps[input].node);
      step.phase = std::max(step.phase, graph_.steps[input].phase);
    }
    if (operation == kInputOperation) {
      step.node = make_input(attributes.get_string("name"), column(attributes.get_string("name")));
    } else if (operation == kStatisticOperation) {
      step.analysis =
          reader.index(member_of(json, "analysis", reader.where()), analyses_->size(), "analysis");
      while (static_cast<int>(graph_.analyses.size()) <= step.analysis) add_analysis();
      step.phase = graph_.analyses[step.analysis].phase + 1;
      step.node = make_statistic(calls_[step.analysis], attributes.get_string("name"));
    } else {
      step.node = make_node(operation, std::move(attributes), std::move(nodes));
    }
    graph_.steps.push_back(std::move(step));
  }

  std::vector<std::pair<std::string, int>> read_named(const Json& list, std::string_view what) {
    std::vector<std::pair<std::string, int>> named;
    for (const Json& json : list) {
      const StepReader reader(json, str(where_, ": ", what, ' ', named.size()));
      named.emplace_back(reader.text("name"), reader.index(member_of(json, "step", reader.where()),
                                                           graph_.steps.size(), "step"));
    }
    return named;
  }

  void add_analysis() {
    const size_t number = graph_.analyses.size();
    const Json& json = (*analyses_)[number];
    const StepReader reader(json, str(where_, ": analysis ", number));
    TransformGraph::AnalysisStep step;
    step.inputs = reader.inputs(graph_.steps.size());
    step.analysis = make_analysis(reader.text("kind"),
                                  read_attributes(reader.object("attributes"), reader.where()));
    if (step.inputs.size() != step.analysis->num_inputs()) {
      throw InvalidArgumentError(str(reader.where(), ": it has ", step.inputs.size(),
                                     " inputs, not ", step.analysis->num_inputs()));
    }
    if (reader.has("vocabulary")) step.vocabulary_name = reader.text("vocabulary");
    TransformNodes nodes;
    for (const int input : step.inputs) {
      nodes.push_back(graph_.steps[input].node);
      step.phase = std::max(step.phase, graph_.steps[input].phase);
    }
    graph_.num_phases = std::max(graph_.num_phases, step.phase + 1);
    calls_[number] = std::make_shared<AnalysisCall>(
        AnalysisCall{step.analysis, std::move(nodes), step.vocabulary_name});
    graph_.analyses.push_back(std::move(step));
  }

  const ColumnType& column(const std::string& name) const {
    for (const auto& [known, type] : graph_.columns) {
      if (known == name) return type;
    }
    throw InvalidArgumentError(str(where_, ": there is no column ", quoted(name)));
  }

  const Json& json_;
  const std::string where_;
  const Json* analyses_ = nullptr;
  std::vector<std::shared_ptr<const AnalysisCall>> calls_;
  TransformGraph graph_;
};

// A step with all that it is computed from: "add(column 'x', constant(1))".
std::string step_text(const TransformGraph& graph, int number, int depth = 0) {
  const auto& step = graph.steps[number];
  const Json& attributes = json_of(step.node->attributes);
  if (step.node->operation == kInputOperation) {
    return str("column ", quoted(step.node->attributes.get_string("name")));
  }
  std::string inside;
  const auto add = [&](const std::string& text) { inside += (inside.empty() ? "" : ", ") + text; };
  constexpr int kMostDepth = 6;
  if (depth < kMostDepth) {
    for (const int input : step.inputs) add(step_text(graph, input, depth + 1));
    if (step.analysis >= 0) {
      for (const int input : graph.analyses[step.analysis].inputs) {
        add(step_text(graph, input, depth + 1));
      }
    }
  } else {
    add("..");
  }
  for (const auto& [name, value] : attributes.items()) {
    if (step.analysis < 0) add(str(name, '=', shown_json(value)));
  }
  if (step.analysis < 0) return str(step.node->operation, '(', inside, ')');
  const auto& analysis = graph.analyses[step.analysis];
  return str(step.node->attributes.get_string("name"), " of ", analysis_name(*analysis.analysis),
             '(', inside, ')');
}

}  // namespace

std::string graph_json(const TransformGraph& graph) {
  Json columns = Json::array(), steps = Json::array(), analyses = Json::array();
  for (const auto& [name, type] : graph.columns) {
    columns.push_back({{"name", name}, {"type", type_json(type)}});
  }
  for (const auto& step : graph.steps) {
    Json json = {{"operation", step.node->operation}};
    const Json& attributes = json_of(step.node->attributes);
    if (!attributes.empty()) json["attributes"] = attributes;
    if (!step.inputs.empty()) json["inputs"] = step.inputs;
    if (step.analysis >= 0) json["analysis"] = step.analysis;
    steps.push_back(std::move(json));
  }
  for (const auto& analysis : graph.analyses) {
    Json json = {{"kind", analysis.analysis->kind()},
                 {"attributes", attributes_json(analysis.analysis->attributes())},
                 {"inputs", analysis.inputs}};
    if (!analysis.vocabulary_name.empty()) json["vocabulary"] = analysis.vocabulary_name;
    analyses.push_back(std::move(json));
  }
  return dump_config({{"version", kGraphVersion},
                      {"columns", columns},
                      {"steps", steps},
                      {"analyses", analyses},
                      {"outputs", named_json(graph.outputs)},
                      {"statistics", named_json(graph.statistics)}},
                     "the preprocessing function");
}

TransformGraph read_graph(std::string_view json, const std::string& where) {
  const Json parsed = parse_config(json, where);
  return Reader(parsed, where).read();
}

std::optional<std::string> graph_difference(const TransformGraph& given,
                                            const TransformGraph& analysed) {
  if (graph_json(given) == graph_json(analysed)) return std::nullopt;
  const auto find = [](const auto& list, const std::string& name) {
    return std::find_if(list.begin(), list.end(),
                        [&](const auto& entry) { return entry.first == name; });
  };
  for (const auto& [name, type] : given.columns) {
    const auto found = find(analysed.columns, name);
    if (found == analysed.columns.end()) return str("column ", quoted(name), " was not there");
    if (!(found->second == type)) {
      return str("column ", quoted(name), " is ", describe(type), ", but was ",
                 describe(found->second));
    }
  }
  for (const auto& [name, type] : analysed.columns) {
    if (find(given.columns, name) == given.columns.end()) {
      return str("column ", quoted(name), " is missing");
    }
  }
  for (const auto& [name, step] : given.outputs) {
    const auto found = find(analysed.outputs, name);
    if (found == analysed.outputs.end()) return str("output ", quoted(name), " was not there");
    const std::string now = step_text(given, step), then = step_text(analysed, found->second);
    if (now != then) return str("output ", quoted(name), " is ", now, ", but was ", then);
  }
  for (const auto& [name, step] : analysed.outputs) {
    if (find(given.outputs, name) == given.outputs.end()) {
      return str("output ", quoted(name), " is missing");
    }
  }
  for (const auto& analysis : analysed.analyses) {
    if (analysis.vocabulary_name.empty()) continue;
    const bool is_there =
        std::any_of(given.analyses.begin(), given.analyses.end(), [&](const auto& other) {
          return other.vocabulary_name == analysis.vocabulary_name &&
                 analysis_name(*other.analysis) == analysis_name(*analysis.analysis);
        });
    if (!is_there) return str("vocabulary ", quoted(analysis.vocabulary_name), " is another one");
  }
  return "its steps stand in another order";
}

}  // namespace cohort::internal
