// CUDA's graphs. Compiled where libtorch has CUDA, and the only folder that names it.
#pragma once

#include <memory>

#include "cohort/core/structure/device_graph.h"

namespace cohort::internal {

std::unique_ptr<DeviceGraph> make_cuda_graph(c10::Device device);

}  // namespace cohort::internal
