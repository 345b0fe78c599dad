// A step of a traced preprocessing function.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/keras/base/config.h"
#include "cohort/transform/analysis/accumulator.h"
#include "cohort/transform/graph/column.h"
#include "cohort/transform/graph/value.h"

namespace cohort::internal {

using TransformNodes = std::vector<std::shared_ptr<const TransformNode>>;
// What an operation makes of its inputs' values in a batch. Called from several threads at once.
using EvaluateColumn = std::function<ColumnValue(std::span<const ColumnValue> inputs)>;

// What a whole dataset is asked for.
struct AnalysisCall {
  std::shared_ptr<const Analysis> analysis;
  TransformNodes inputs;
  std::string vocabulary_name = {};  // of one that writes a file: the file's name
};

struct TransformNode {
  // "input", "statistic" (a result of `call`), else the name of an operation.
  std::string operation;
  keras::Config attributes;  // with the operation they say all of what is computed
  TransformNodes inputs;
  ColumnType type;
  EvaluateColumn evaluate;                             // of an operation
  std::shared_ptr<const AnalysisCall> call = nullptr;  // of a statistic
};

inline constexpr std::string_view kInputOperation = "input";
inline constexpr std::string_view kStatisticOperation = "statistic";
inline constexpr std::string_view kVocabularyResult = "vocabulary";

std::shared_ptr<const TransformNode> make_input(const std::string& name, const ColumnType& type);
// The result `name` of an analysis; kVocabularyResult is the table of the file that it writes.
std::shared_ptr<const TransformNode> make_statistic(std::shared_ptr<const AnalysisCall> call,
                                                    const std::string& name);
// Errors: InvalidArgument (inputs that the operation does not take, names it; no such operation).
std::shared_ptr<const TransformNode> make_node(std::string_view operation, keras::Config attributes,
                                               TransformNodes inputs);
// The same from columns. Errors: as above; FailedPrecondition (a column that holds nothing).
transform::Column apply(std::string_view operation, keras::Config attributes,
                        const std::vector<transform::Column>& inputs);
const std::shared_ptr<const TransformNode>& node_of(const transform::Column& column,
                                                    std::string_view user);

// The type of a result of an analysis, found in the same way.
// Errors: InvalidArgument (inputs that it does not take; no such result).
ColumnType statistic_type(const AnalysisCall& call, const std::string& name);

ColumnBatch batch_of(const ColumnValue& value);

// The type of what `evaluate` gives, found by two small batches of made-up values.
// Errors: InvalidArgument (the number of rows changes; what evaluate throws).
ColumnType probed_type(const TransformNodes& inputs, const EvaluateColumn& evaluate);

}  // namespace cohort::internal
