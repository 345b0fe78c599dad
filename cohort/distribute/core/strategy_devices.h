// The device lists of strategies whose replicas are in this process.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cohort::internal {

// The canonical names of `devices`. `strategy` is named in errors.
// Errors: InvalidArgument (none, a device twice, no such device), Unimplemented (another task's).
std::vector<std::string> checked_devices(const std::vector<std::string>& devices,
                                         std::string_view strategy);
// The canonical names of all logical devices of a type: "GPU".
std::vector<std::string> all_devices(std::string_view type);
// "'/job:localhost/replica:0/task:0/device:CPU:0', ..."
std::string device_list(const std::vector<std::string>& devices);

}  // namespace cohort::internal
