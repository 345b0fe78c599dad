// The name by which this machine is known to people.
#pragma once

#include <string>

namespace cohort::internal {

// "unknown-host" where the system does not tell.
std::string host_name();

}  // namespace cohort::internal
