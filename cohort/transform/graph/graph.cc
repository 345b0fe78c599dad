#include "cohort/transform/graph/graph.h"

#include <algorithm>
#include <map>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/transform/analysis/analyses.h"
#include "cohort/transform/graph/make_node.h"

namespace cohort::internal {
namespace {

// Collects the steps that outputs need.
class Collector {
 public:
  explicit Collector(TransformGraph& graph) : graph_(graph) {}

  int add(const std::shared_ptr<const TransformNode>& node) {
    if (const auto known = of_node_.find(node.get()); known != of_node_.end()) return known->second;
    TransformGraph::Step step{.node = node};
    std::string key = str(node->operation, node->attributes.json());
    for (const auto& input : node->inputs) {
      step.inputs.push_back(add(input));
      key += str(' ', step.inputs.back());
      step.phase = std::max(step.phase, graph_.steps[step.inputs.back()].phase);
    }
    if (node->call != nullptr) {
      step.analysis = add(*node->call);
      key += str(" analysis ", step.analysis);
      step.phase = graph_.analyses[step.analysis].phase + 1;
    }
    const auto [place, is_new] = of_key_.emplace(key, static_cast<int>(graph_.steps.size()));
    if (is_new) graph_.steps.push_back(std::move(step));
    of_node_.emplace(node.get(), place->second);
    return place->second;
  }

  int add(const AnalysisCall& call) {
    TransformGraph::AnalysisStep step{.analysis = call.analysis,
                                      .vocabulary_name = call.vocabulary_name};
    std::string key = str(analysis_name(*call.analysis), call.vocabulary_name);
    for (const auto& input : call.inputs) {
      step.inputs.push_back(add(input));
      key += str(' ', step.inputs.back());
      step.phase = std::max(step.phase, graph_.steps[step.inputs.back()].phase);
    }
    const auto [place, is_new] = analyses_.emplace(key, static_cast<int>(graph_.analyses.size()));
    if (is_new) {
      graph_.num_phases = std::max(graph_.num_phases, step.phase + 1);
      graph_.analyses.push_back(std::move(step));
    }
    return place->second;
  }

 private:
  TransformGraph& graph_;
  std::map<const TransformNode*, int> of_node_;
  std::map<std::string, int> of_key_;
  std::map<std::string, int> analyses_;
};

// The function that this thread traces.
struct Tracing {
  std::vector<std::shared_ptr<const AnalysisCall>> vocabularies = {};
  std::map<std::string, int, std::less<>> calls = {};  // for each prefix of default names
  std::vector<std::pair<std::string, std::shared_ptr<const TransformNode>>> statistics = {};
};
thread_local Tracing* tracing = nullptr;

Tracing& current_tracing(std::string_view what) {
  if (tracing != nullptr) return *tracing;
  throw FailedPreconditionError(
      str("transform::", what,
          " is called outside of a preprocessing function; call it inside of "
          "the function that analyze_dataset gets"));
}

}  // namespace

std::string vocabulary_file_name(std::string_view name) {
  constexpr auto is_blank = [](char c) { return c == ' ' || c == '-' || (c >= '\t' && c <= '\r'); };
  std::string file;
  for (const char c : name) {
    if (is_blank(c)) {
      const bool is_run = !file.empty() && file.back() == '-';
      if (!is_run && (c == '-' || !file.empty())) file += '-';
    } else {
      file += is_letter(c) || is_digit(c) || c == '_' ? c : '_';
    }
  }
  return file;
}

std::shared_ptr<const AnalysisCall> trace_vocabulary(std::shared_ptr<const Analysis> analysis,
                                                     TransformNodes inputs, std::string name,
                                                     const DefaultName& default_name) {
  Tracing& current = current_tracing("vocabulary");
  const int call = current.calls[std::string(default_name.prefix)]++;
  if (name.empty()) {
    name = str(default_name.prefix, call == 0 ? "" : str('_', call), default_name.suffix);
  }
  const std::string file = vocabulary_file_name(name);
  constexpr size_t kMostBytes = 200;
  if (file.size() > kMostBytes) {
    throw InvalidArgumentError(str("the name of a vocabulary has ", file.size(), " bytes, ",
                                   kMostBytes, " at most: ", quoted(name)));
  }
  for (const auto& other : current.vocabularies) {
    if (vocabulary_file_name(other->vocabulary_name) != file) continue;
    throw InvalidArgumentError(str("the vocabularies ", quoted(other->vocabulary_name), " and ",
                                   quoted(name), " have the same file ", quoted(file),
                                   "; give another .vocab_filename, or apply the first one twice"));
  }
  current.vocabularies.push_back(std::make_shared<AnalysisCall>(
      AnalysisCall{std::move(analysis), std::move(inputs), std::move(name)}));
  return current.vocabularies.back();
}

void trace_statistic(std::string_view name, std::shared_ptr<const TransformNode> node) {
  Tracing& current = current_tracing("keep_statistic");
  if (name.empty()) throw InvalidArgumentError("transform::keep_statistic: the name is empty");
  for (const auto& [known, other] : current.statistics) {
    if (known != name) continue;
    throw InvalidArgumentError(
        str("transform::keep_statistic: there are two statistics ", quoted(name)));
  }
  current.statistics.emplace_back(name, std::move(node));
}

int TransformGraph::vocabulary(std::string_view name) const {
  std::string names;
  for (size_t i = 0; i < analyses.size(); ++i) {
    const std::string& known = analyses[i].vocabulary_name;
    if (known.empty()) continue;
    if (known == name) return static_cast<int>(i);
    names += (names.empty() ? "" : ", ") + quoted(known);
  }
  throw NotFoundError(str("there is no vocabulary ", quoted(name),
                          "; there are: ", names.empty() ? "none" : names));
}

TransformGraph trace(const transform::PreprocessingFunction& function, const NamedTypes& columns) {
  TransformGraph graph{.columns = columns};
  transform::Columns inputs;
  for (const auto& [name, type] : columns) inputs[name] = transform::Column(make_input(name, type));
  Tracing own;
  Tracing* const outer = std::exchange(tracing, &own);
  transform::Columns outputs;
  try {
    outputs = function(inputs);
  } catch (...) {
    tracing = outer;
    throw;
  }
  tracing = outer;
  if (outputs.size() == 0) {
    throw InvalidArgumentError("the preprocessing function returned no columns");
  }
  Collector collector(graph);
  for (const auto& [name, column] : outputs) {
    const auto& node = column.node();
    if (node == nullptr) {
      throw InvalidArgumentError(str("output ", quoted(name), " holds nothing"));
    }
    if (node->type.is_statistic() || node->type.kind == ColumnKind::kVocabulary) {
      throw InvalidArgumentError(
          str("output ", quoted(name), " is ", describe(node->type),
              ", which has no rows; combine it with a column, or keep its value by "
              "transform::keep_statistic"));
    }
    graph.outputs.emplace_back(name, collector.add(node));
  }
  for (const auto& [name, node] : own.statistics) {
    graph.statistics.emplace_back(name, collector.add(node));
  }
  for (const auto& call : own.vocabularies) collector.add(*call);
  return graph;
}

}  // namespace cohort::internal
