// The example's command line.
#pragma once

#include <cstdint>
#include <string>

namespace parameter_server {

struct Options {
  bool in_process = false;  // a cluster of servers in this process
  int workers = 3;          // of that cluster
  int ps = 2;
  int window = 2;
  int epochs = 4;
  uint64_t seed = 1;
  std::string checkpoints;  // a folder; empty: none are written
};

// Prints help or what is wrong, and ends the program, where the command line says so (exit 0, 64).
Options parse_options(int argc, char** argv);

}  // namespace parameter_server
