#include "cohort/transform/graph/apply.h"

#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/transform/graph/make_node.h"

namespace cohort::internal {

const std::shared_ptr<const TransformNode>& node_of(const transform::Column& column,
                                                    std::string_view user) {
  if (column.node() == nullptr) {
    throw FailedPreconditionError(
        str("transform::", user,
            ": the column holds nothing yet; was an output read before it was "
            "set, or its name misspelt?"));
  }
  return column.node();
}

transform::Column apply(std::string_view operation, keras::Config attributes,
                        const std::vector<transform::Column>& inputs) {
  TransformNodes nodes;
  for (const auto& input : inputs) nodes.push_back(node_of(input, operation));
  return transform::Column(make_node(operation, std::move(attributes), std::move(nodes)));
}

}  // namespace cohort::internal
