// Whether a process of this host has ended, as others of the host can know for certain.
//
//   const std::string place = process_place();     // sent to another process
//   if (has_ended(place)) ...                      // there
#pragma once

#include <string>

namespace cohort::internal {

// Stands for this process, among all of all hosts and times. Empty where the system does not tell.
std::string process_place();

// Whether the process with this place has ended. False where nobody here can know: it was on
// another host, in another pid namespace, or of another user.
bool has_ended(const std::string& place);

}  // namespace cohort::internal
