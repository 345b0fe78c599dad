// Python's rules of slices, apart from where the rows come from.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cohort/core/structure/tensor.h"
#include "cohort/parameter_server/variables/sharded_variable.h"

namespace cohort::internal {

// `shape`: of the whole. `rows`: reads rows by their numbers, [n] of int64. `name`: for messages.
// Errors: those of ShardedVariable::index.
Tensor sliced(const std::vector<int64_t>& shape, const std::vector<distribute::SliceItem>& items,
              const std::function<Tensor(const Tensor& ids)>& rows, const std::string& name);

}  // namespace cohort::internal
