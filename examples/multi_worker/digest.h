// Whether two trainings have ended with the same bits.
#pragma once

#include <cohort/cohort.h>

#include <string>
#include <vector>

namespace multi_worker {

// 16 hex digits: a 64-bit hash (FNV-1a) of the values' bytes, in order.
std::string digest(const std::vector<cohort::distribute::Variable>& variables);

}  // namespace multi_worker
