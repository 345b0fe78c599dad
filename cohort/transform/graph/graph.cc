#include "cohort/transform/graph/graph.h"

#include <algorithm>
#include <map>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/transform/analysis/analyses.h"

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
  std::vector<std::shared_ptr<const AnalysisCall>> vocabularies;
};
thread_local Tracing* tracing = nullptr;

bool is_taken(std::string_view name) {
  return std::any_of(tracing->vocabularies.begin(), tracing->vocabularies.end(),
                     [&](const auto& call) { return call->vocabulary_name == name; });
}

}  // namespace

std::shared_ptr<const AnalysisCall> trace_vocabulary(std::shared_ptr<const Analysis> analysis,
                                                     TransformNodes inputs, std::string name,
                                                     std::string_view default_name) {
  if (tracing == nullptr) {
    throw FailedPreconditionError(
        "a vocabulary is asked for outside of a preprocessing function; call it inside of the "
        "function that analyze_dataset gets");
  }
  if (name.empty()) {
    name = default_name;
    for (int i = 1; is_taken(name); ++i) name = str(default_name, '_', i);
  } else if (is_taken(name)) {
    throw InvalidArgumentError(str("two vocabularies are called ", quoted(name),
                                   "; each has a file of this name, so give another "
                                   ".vocab_filename, or apply the first one twice"));
  }
  tracing->vocabularies.push_back(std::make_shared<AnalysisCall>(
      AnalysisCall{std::move(analysis), std::move(inputs), std::move(name)}));
  return tracing->vocabularies.back();
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
              ", which has no rows; combine it with a column (TFTransformOutput::statistics has "
              "its value)"));
    }
    graph.outputs.emplace_back(name, collector.add(node));
  }
  for (const auto& call : own.vocabularies) collector.add(*call);
  return graph;
}

}  // namespace cohort::internal
