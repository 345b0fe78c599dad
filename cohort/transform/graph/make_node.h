// Makes steps of preprocessing functions, and finds what they give.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "cohort/transform/graph/node.h"

namespace cohort::internal {

std::shared_ptr<const TransformNode> make_input(const std::string& name, const ColumnType& type);
// The result `name` of an analysis; kVocabularyResult is the table of the file that it writes.
std::shared_ptr<const TransformNode> make_statistic(std::shared_ptr<const AnalysisCall> call,
                                                    const std::string& name);
// Errors: InvalidArgument (inputs that the operation does not take, names it; no such operation).
std::shared_ptr<const TransformNode> make_node(std::string_view operation, keras::Config attributes,
                                               TransformNodes inputs);
// The type of a result of an analysis, found in the same way.
// Errors: InvalidArgument (inputs that it does not take; no such result).
ColumnType statistic_type(const AnalysisCall& call, const std::string& name);

ColumnBatch batch_of(const ColumnValue& value);

// The type of what `evaluate` gives, found by two small batches of made-up values.
// Errors: InvalidArgument (the number of rows changes; what evaluate throws).
ColumnType probed_type(const TransformNodes& inputs, const EvaluateColumn& evaluate);

}  // namespace cohort::internal
