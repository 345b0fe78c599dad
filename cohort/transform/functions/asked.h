// What analyzers and mappers have in common.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cohort/transform/analysis/analyses.h"
#include "cohort/transform/graph/column.h"
#include "cohort/transform/graph/node.h"

namespace cohort::internal {

// `user` is the function's name, for errors.

// Errors: InvalidArgument (a statistic or a vocabulary).
void take_column(const TransformNode& node, std::string_view user);
// The column's step. Errors: InvalidArgument (strings; as take_column), FailedPrecondition.
std::shared_ptr<const TransformNode> numbers_of(const transform::Column& x, std::string_view user);
// The column as strings. Errors: InvalidArgument (numbers with fractions), as take_column.
transform::Column token_column(const transform::Column& x, std::string_view user);
// float32 [numbers].
transform::Column constant_vector(const std::vector<double>& numbers);
// Errors: InvalidArgument (inputs that the analysis does not take).
transform::Column statistic(std::string_view user, AnalysisPtr analysis, TransformNodes inputs,
                            const std::string& name);

}  // namespace cohort::internal
