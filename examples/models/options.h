// The command line of the programs.
#pragma once

#include <cstdint>
#include <string>

#include "models/example.h"

namespace models {

struct Options {
  std::string strategy = "mirrored";
  int replicas = 2;  // of this process
  int64_t epochs = 0;
  int64_t global_batch = 0;
  double dropout = 0.1;
  uint64_t seed = 2;
  int verbose = -1;
  std::string out;  // where the model is saved; empty: nowhere
};

// Epochs and batch are the example's, unless they are said. Ends the program on --help (0) and on a
// wrong command line (64).
Options parse_options(int argc, char** argv, const Example& example);

}  // namespace models
