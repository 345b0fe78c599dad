#include "cohort/transform/functions/asked.h"

#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/keras/base/config_json.h"
#include "cohort/transform/functions/column_functions.h"
#include "cohort/transform/graph/apply.h"
#include "cohort/transform/graph/make_node.h"

namespace cohort::internal {

using transform::Column;

Column constant_vector(const std::vector<double>& numbers) {
  Json list = Json::array();
  for (const double number : numbers) list.push_back(number);
  return apply("constant_vector", ConfigData::config_of({{"value", std::move(list)}}), {});
}

std::shared_ptr<const TransformNode> numbers_of(const Column& x, std::string_view user) {
  const auto& node = node_of(x, user);
  if (node->type.is_string() || node->type.kind == ColumnKind::kVocabulary) {
    throw InvalidArgumentError(str("transform::", user, ": it takes numbers, but got ",
                                   describe(node->type),
                                   "; transform::to_number makes them of strings"));
  }
  take_column(*node, user);
  return node;
}

void take_column(const TransformNode& node, std::string_view user) {
  if (!node.type.is_statistic() && node.type.kind != ColumnKind::kVocabulary) return;
  throw InvalidArgumentError(str("transform::", user, ": it takes a column, but got ",
                                 describe(node.type), ", which has no rows"));
}

Column statistic(std::string_view user, AnalysisPtr analysis, TransformNodes inputs,
                 const std::string& name) {
  try {
    return Column(make_statistic(
        std::make_shared<AnalysisCall>(AnalysisCall{std::move(analysis), std::move(inputs)}),
        name));
  } catch (const InvalidArgumentError& error) {
    throw InvalidArgumentError(str("transform::", user, ": ", error.what()));
  }
}

Column token_column(const Column& x, std::string_view user) {
  const auto& node = node_of(x, user);
  take_column(*node, user);
  if (node->type.is_string()) return x;
  if (at::isIntegralType(node->type.dtype.dtype(), false)) return transform::as_string(x);
  throw InvalidArgumentError(
      str("transform::", user, ": it takes strings or integers, but got ", describe(node->type)));
}

}  // namespace cohort::internal
