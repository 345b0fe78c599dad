#include "cohort/transform/graph/evaluation.h"

#include "cohort/core/error.h"
#include "cohort/core/error_context.h"
#include "cohort/core/text.h"
#include "cohort/transform/graph/batch_columns.h"

namespace cohort::internal {
namespace {

ColumnValue evaluated(const TransformGraph::Step& step, const std::vector<ColumnValue>& values) {
  std::vector<ColumnValue> inputs;
  inputs.reserve(step.inputs.size());
  for (const int input : step.inputs) inputs.push_back(values[input]);
  return step.node->evaluate(inputs);
}

const ColumnValue& result_of(const AnalysisValues& values, const TransformGraph::Step& step) {
  const std::string name = step.node->attributes.get_string("name");
  for (const auto& [known, value] : values.at(step.analysis)) {
    if (known == name) return value;
  }
  throw InternalError(
      str("a transform has no result ", quoted(name), " of analysis ", step.analysis));
}

}  // namespace

GraphEvaluation::GraphEvaluation(const TransformGraph& graph, std::vector<int> steps,
                                 const AnalysisValues& values)
    : graph_(graph), steps_(std::move(steps)), known_values_(graph.steps.size()) {
  std::vector<bool> is_needed(graph.steps.size());
  for (const int step : steps_) is_needed[step] = true;
  for (size_t i = graph.steps.size(); i-- > 0;) {
    if (!is_needed[i]) continue;
    for (const int input : graph.steps[i].inputs) is_needed[input] = true;
  }
  std::vector<bool> depends_on_batch(graph.steps.size());
  for (size_t i = 0; i < graph.steps.size(); ++i) {
    if (!is_needed[i]) continue;
    const TransformGraph::Step& step = graph.steps[i];
    bool depends = step.node->operation == kInputOperation;
    if (depends) columns_.push_back(step.node->attributes.get_string("name"));
    for (const int input : step.inputs) depends = depends || depends_on_batch[input];
    depends_on_batch[i] = depends;
    if (depends) {
      plan_.push_back({static_cast<int>(i), &step});
    } else if (step.analysis >= 0) {
      known_values_[i] = result_of(values, step);
    } else {
      known_values_[i] = evaluated(step, known_values_);
    }
  }
}

std::vector<ColumnValue> GraphEvaluation::operator()(const Structure& batch) const {
  if (!batch.is_dict()) {
    throw InvalidArgumentError(str("a transform takes a dict of columns, but got ", batch));
  }
  std::vector<ColumnValue> values = known_values_;
  int64_t rows = -1;
  for (const Planned& planned : plan_) {
    const TransformGraph::Step& step = *planned.definition;
    if (step.node->operation != kInputOperation) {
      values[planned.step] = evaluated(step, values);
      continue;
    }
    const std::string name = step.node->attributes.get_string("name");
    auto column = column_of(batch[name]);
    if (!column.has_value()) {
      throw InvalidArgumentError(
          str("column ", quoted(name), ": it is no tensor and not ragged, but ", batch[name]));
    }
    check_column(name, *column, step.node->type, rows);
    values[planned.step] = std::move(*column);
  }
  std::vector<ColumnValue> results;
  results.reserve(steps_.size());
  for (const int step : steps_) results.push_back(values[step]);
  return results;
}

}  // namespace cohort::internal
