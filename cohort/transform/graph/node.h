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
#include "cohort/transform/graph/value.h"

namespace cohort::internal {

struct TransformNode;
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

}  // namespace cohort::internal
