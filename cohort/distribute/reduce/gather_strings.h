// Strategy::gather of strings, which travel as tensors of their lengths and bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "cohort/core/structure/string_tensor.h"

namespace cohort::internal {

class StrategyCore;

// See Strategy::gather. local_values: those of this task's replicas, in order. COLLECTIVE over the
// tasks.
// Errors: as for tensors.
StringTensor gather_strings(const StrategyCore& core, const std::vector<StringTensor>& local_values,
                            int64_t axis);

}  // namespace cohort::internal
