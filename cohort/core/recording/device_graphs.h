// Makes graphs of the devices that have them.
#pragma once

#include <memory>

#include "cohort/core/structure/device_graph.h"

namespace cohort::internal {

// nullptr: this build has no graphs for devices of this kind.
std::unique_ptr<DeviceGraph> make_device_graph(c10::Device device);

using DeviceGraphMaker = std::unique_ptr<DeviceGraph> (*)(c10::Device device);
// Makes the graphs of another kind of device than CUDA's; nullptr: no more. For tests.
void set_device_graphs_for_testing(c10::DeviceType type, DeviceGraphMaker maker);

}  // namespace cohort::internal
