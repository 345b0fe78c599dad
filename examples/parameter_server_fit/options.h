// The example's command line.
#pragma once

#include <cstdint>
#include <string>

namespace parameter_server_fit {

struct Options {
  bool in_process = false;  // a cluster of servers in this process
  int workers = 3;          // of that cluster
  int ps = 2;
  int64_t epochs = 5;
  uint64_t seed = 1;
  std::string working_dir = "/tmp/my_working_dir";
};

// Prints help or what is wrong, and ends the program, where the command line says so (exit 0, 64).
Options parse_options(int argc, char** argv);

}  // namespace parameter_server_fit
