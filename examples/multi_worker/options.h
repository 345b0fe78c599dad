// The example's command line.
#pragma once

#include <cstdint>
#include <string>

namespace multi_worker {

struct Options {
  std::string data;  // folder with the four IDX files; empty: cache, download or drawings
  int replicas = 1;  // of each task
  int elastic = 0;   // replicas in all, which the tasks host; 0: each task has its own
  int epochs = 10;
  int64_t global_batch = 128;
  uint64_t seed = 2;
  std::string checkpoints;  // a folder; empty: none are written
  bool input = false;       // the input examples in place of the training
};

// Prints help or what is wrong, and ends the program, where the command line says so (exit 0, 64).
Options parse_options(int argc, char** argv);

}  // namespace multi_worker
