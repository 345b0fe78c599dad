#include "cohort/transform/output/applied_transform.h"

#include <algorithm>
#include <set>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/structure/composite.h"
#include "cohort/core/text.h"
#include "cohort/transform/graph/batch_columns.h"

namespace cohort::internal {
namespace {

std::string names_of(const NamedTypes& columns) {
  std::string names;
  for (const auto& [name, type] : columns) names += (names.empty() ? "" : ", ") + quoted(name);
  return names;
}

// The columns that each step of a graph is computed from, by their places.
std::vector<std::set<std::string>> columns_of_steps(const TransformGraph& graph) {
  std::vector<std::set<std::string>> columns(graph.steps.size());
  for (size_t i = 0; i < graph.steps.size(); ++i) {
    const auto& step = graph.steps[i];
    if (step.node->operation == kInputOperation) {
      columns[i].insert(step.node->attributes.get_string("name"));
    }
    for (const int input : step.inputs) {
      columns[i].insert(columns[input].begin(), columns[input].end());
    }
  }
  return columns;
}

}  // namespace

AppliedTransform::AppliedTransform(std::string directory, ReadTransform read)
    : directory_(std::move(directory)), read_(std::move(read)) {}

ColumnValue AppliedTransform::statistic(int step) const {
  return GraphEvaluation(read_.graph, {step}, read_.values)(Structure::make_dict({})).front();
}

const AppliedTransform::Outputs& AppliedTransform::outputs_for(const Structure& batch) const {
  std::vector<bool> is_there;
  for (const auto& [name, type] : read_.graph.columns) is_there.push_back(batch.contains(name));
  const std::lock_guard lock(mutex_);
  auto& outputs = outputs_[is_there];
  if (outputs == nullptr) outputs = make_outputs(batch);
  return *outputs;
}

std::unique_ptr<const AppliedTransform::Outputs> AppliedTransform::make_outputs(
    const Structure& batch) const {
  const TransformGraph& graph = read_.graph;
  const auto columns = columns_of_steps(graph);
  std::vector<std::string> names;
  std::vector<int> steps;
  std::set<std::string> missing;
  for (const auto& [name, step] : graph.outputs) {
    bool suffices = true;
    for (const std::string& column : columns[step]) {
      if (batch.contains(column)) continue;
      suffices = false;
      missing.insert(column);
    }
    if (!suffices) continue;
    names.push_back(name);
    steps.push_back(step);
  }
  if (names.empty()) {
    std::string list;
    for (const std::string& column : missing) list += (list.empty() ? "" : ", ") + quoted(column);
    throw InvalidArgumentError(
        str("the columns given to the transform suffice for no output; "
            "missing: ",
            list));
  }
  return std::make_unique<const Outputs>(
      Outputs{std::move(names), GraphEvaluation(graph, std::move(steps), read_.values)});
}

Structure AppliedTransform::apply(const Structure& batch) const {
  if (!batch.is_dict() || composite_kind(batch) != Composite::kNone) {
    throw InvalidArgumentError(str("a transform takes a dict of columns, but got ", batch));
  }
  for (const auto& [name, column] : batch.items()) {
    const bool is_known =
        std::any_of(read_.graph.columns.begin(), read_.graph.columns.end(),
                    [&, &name = name](const auto& known) { return known.first == name; });
    if (!is_known) {
      throw InvalidArgumentError(str("column ", quoted(name), " was not analysed; the transform ",
                                     "knows: ", names_of(read_.graph.columns)));
    }
  }
  const Outputs& outputs = outputs_for(batch);
  const std::vector<ColumnValue> values = outputs.evaluation(batch);
  Structure::Dict columns;
  columns.reserve(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    columns.emplace_back(outputs.names[i], column_structure(values[i]));
  }
  return Structure::make_dict(std::move(columns));
}

}  // namespace cohort::internal
