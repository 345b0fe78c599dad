#pragma once

#include <memory>

#include "cohort/ops/plan/unit.h"

namespace cohort::internal::plan {

// Makes a convolution's unit; nullptr if it takes no such convolution. Gives no gradient of its
// input.
std::unique_ptr<Unit> make_single_channel(const Convolution& operation, const Fused& fused,
                                          const Image& image, const Image& result);

}  // namespace cohort::internal::plan
