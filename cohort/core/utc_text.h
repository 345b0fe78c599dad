// Dates as logs and files of Cohort hold them, in the form of RFC 3339.
//
//   utc_text(std::chrono::floor<std::chrono::seconds>(now))        // "2026-11-22T23:46:52Z"
//   utc_text(std::chrono::floor<std::chrono::milliseconds>(now))   // "2026-11-22T23:46:52.250Z"
#pragma once

#include <chrono>
#include <string>

namespace cohort::internal {

std::string utc_text(std::chrono::sys_seconds time);
std::string utc_text(std::chrono::sys_time<std::chrono::milliseconds> time);

}  // namespace cohort::internal
