// For tests: what `cohort cluster status` says.
#pragma once

#include <cstdio>
#include <sstream>
#include <string>

namespace cohort::parameter_server_faults {

// Of the cluster whose coordinator has this address.
inline std::string status_of(const std::string& address) {
  const std::string command = COHORT_COMMAND " cluster status " + address + " 2>&1";
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return "";
  std::string output;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) output += static_cast<char>(c);
  ::pclose(pipe);
  return output;
}

// The task's; empty: there is none.
inline std::string line_of(const std::string& status, const std::string& task) {
  std::istringstream lines(status);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(task + " ")) return line;
  }
  return "";
}

}  // namespace cohort::parameter_server_faults
