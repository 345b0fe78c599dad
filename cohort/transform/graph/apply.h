// Steps from columns.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "cohort/keras/base/config.h"
#include "cohort/transform/graph/column.h"
#include "cohort/transform/graph/node.h"

namespace cohort::internal {

// The step that `operation` makes of columns.
// Errors: InvalidArgument (inputs that it does not take, names it), FailedPrecondition (a column
// that holds nothing).
transform::Column apply(std::string_view operation, keras::Config attributes,
                        const std::vector<transform::Column>& inputs);
// The step of a column. Errors: FailedPrecondition (it holds nothing; `user` is who asks).
const std::shared_ptr<const TransformNode>& node_of(const transform::Column& column,
                                                    std::string_view user);

}  // namespace cohort::internal
