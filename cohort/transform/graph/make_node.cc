#include "cohort/transform/graph/make_node.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/files/file_system.h"
#include "cohort/core/text.h"
#include "cohort/transform/graph/operations.h"

namespace cohort::internal {
namespace {

// Two made-up batches that differ in every size which may differ.
struct Probe {
  int64_t rows;
  int64_t unknown_size;
};
constexpr Probe kProbes[] = {{2, 4}, {3, 5}};

Leaf made_up(const LeafType& dtype, const std::vector<int64_t>& sizes) {
  if (!dtype.is_string()) return Leaf(at::zeros(sizes, dtype.dtype()));
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return Leaf(StringTensor(std::vector<std::string>(static_cast<size_t>(count), "0"), sizes));
}

ColumnValue made_up(const ColumnType& type, const Probe& probe) {
  if (type.kind == ColumnKind::kVocabulary) {
    static const auto table = std::make_shared<VocabularyTable>(lookup::StaticHashTable(
        lookup::KeyValueTensorInitializer(StringTensor({"0"}), at::arange(1)),
        Structure(int64_t{-1})));
    return {.vocabulary = table};
  }
  if (type.is_ragged()) {
    Tensor row_splits = at::arange(probe.rows + 1);  // a value a row, and none in the last
    row_splits[probe.rows] -= 1;
    return {.values = made_up(type.dtype, {probe.rows - 1}), .row_splits = row_splits};
  }
  std::vector<int64_t> sizes;
  if (!type.is_statistic()) sizes.push_back(probe.rows);
  for (const int64_t size : type.shape) {
    sizes.push_back(size == kUnknownDim ? probe.unknown_size : size);
  }
  return {.values = made_up(type.dtype, sizes)};
}

void check_rows(const ColumnValue& value, int64_t rows) {
  const int64_t found = value.is_ragged()
                            ? value.row_splits.size(0) - 1
                            : (value.values.dim() == 0 ? -1 : value.values.sizes().front());
  if (found == rows) return;
  throw InvalidArgumentError(
      found < 0 ? str("the result has no rows: of a batch of ", rows, " rows it is one value")
                : str("the result has ", found, " rows where the batch has ", rows));
}

ColumnType type_by_probes(const TransformNodes& inputs, const EvaluateColumn& evaluate,
                          bool has_rows) {
  std::optional<ColumnType> type;
  for (const Probe& probe : kProbes) {
    std::vector<ColumnValue> values;
    for (const auto& input : inputs) values.push_back(made_up(input->type, probe));
    const ColumnValue result = evaluate(values);
    if (has_rows) check_rows(result, probe.rows);
    ColumnType found{.dtype = leaf_type(result.values)};
    if (result.is_ragged()) {
      found.kind = ColumnKind::kRagged;
    } else {
      found.kind = has_rows ? ColumnKind::kDense : ColumnKind::kStatistic;
      found.shape = result.values.sizes();
      if (has_rows) found.shape.erase(found.shape.begin());
    }
    if (!type.has_value()) {
      type = found;
      continue;
    }
    if (found.shape.size() != type->shape.size()) {
      throw InvalidArgumentError("the number of its result's dimensions depends on the batch");
    }
    for (size_t i = 0; i < found.shape.size(); ++i) {
      if (found.shape[i] != type->shape[i]) type->shape[i] = kUnknownDim;
    }
  }
  return *type;
}

}  // namespace

std::string describe(const ColumnType& type) {
  if (type.kind == ColumnKind::kVocabulary) return "a vocabulary";
  std::string text = type.is_statistic() ? "a statistic"
                     : type.is_ragged()  ? "a ragged column"
                                         : "a column";
  text += type.is_string() ? " of strings" : str(" of ", type.dtype.name());
  if (type.is_ragged()) return text;
  std::string shape = type.is_statistic() ? "" : "rows";
  for (const int64_t size : type.shape) {
    if (!shape.empty()) shape += ", ";
    shape += size == kUnknownDim ? "?" : str(size);
  }
  return str(text, " [", shape, "]");
}

ColumnType probed_type(const TransformNodes& inputs, const EvaluateColumn& evaluate) {
  const bool has_rows = std::any_of(inputs.begin(), inputs.end(), [](const auto& input) {
    return input->type.kind == ColumnKind::kDense || input->type.is_ragged();
  });
  return type_by_probes(inputs, evaluate, has_rows);
}

ColumnType statistic_type(const AnalysisCall& call, const std::string& name) {
  const Analysis& analysis = *call.analysis;
  if (analysis.writes_file() && name == kVocabularyResult) return {.kind = ColumnKind::kVocabulary};
  if (analysis.writes_file()) return {.dtype = at::kLong, .kind = ColumnKind::kStatistic};
  const EvaluateColumn evaluate = [&](std::span<const ColumnValue> values) {
    const auto accumulator = analysis.start({posix_file_system(), "", ""});
    std::vector<ColumnBatch> batch;
    for (const ColumnValue& value : values) batch.push_back(batch_of(value));
    accumulator->add(batch);
    return ColumnValue{.values = accumulator->finish().constant(name)};
  };
  return type_by_probes(call.inputs, evaluate, /*has_rows=*/false);
}

ColumnBatch batch_of(const ColumnValue& value) {
  ColumnBatch batch{.values = value.values};
  if (value.is_ragged()) {
    batch.row_splits = value.row_splits;
    batch.rows = value.row_splits.size(0) - 1;
  } else {
    batch.rows = value.values.sizes().front();
  }
  return batch;
}

std::shared_ptr<const TransformNode> make_input(const std::string& name, const ColumnType& type) {
  auto node = std::make_shared<TransformNode>();
  node->operation = kInputOperation;
  node->attributes.set("name", name);
  node->type = type;
  return node;
}

std::shared_ptr<const TransformNode> make_statistic(std::shared_ptr<const AnalysisCall> call,
                                                    const std::string& name) {
  auto node = std::make_shared<TransformNode>();
  node->operation = kStatisticOperation;
  node->attributes.set("name", name);
  node->type = statistic_type(*call, name);
  node->call = std::move(call);
  return node;
}

std::shared_ptr<const TransformNode> make_node(std::string_view operation, keras::Config attributes,
                                               TransformNodes inputs) {
  auto node = std::make_shared<TransformNode>();
  node->operation = operation;
  node->attributes = std::move(attributes);
  node->inputs = std::move(inputs);
  std::vector<ColumnType> types;
  for (const auto& input : node->inputs) types.push_back(input->type);
  try {
    node->evaluate = find_operation(operation)(node->attributes, types);
    node->type = probed_type(node->inputs, node->evaluate);
  } catch (const InvalidArgumentError& error) {
    std::string given;
    for (const ColumnType& type : types) given += (given.empty() ? "" : ", ") + describe(type);
    throw InvalidArgumentError(str("transform::", operation, ": ", error.what(),
                                   " (given: ", given.empty() ? "nothing" : given, ")"));
  }
  return node;
}

}  // namespace cohort::internal
