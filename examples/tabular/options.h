// The command line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tabular {

struct Options {
  std::string csv;        // empty: a table is made, and written to `made`
  std::string made;       // empty: in the folder for temporary files
  int64_t rows = 20'000;  // of a table that is made
  std::string label = "bought";
  std::vector<std::string> texts = {"comment"};
  std::string na_value = "NA";
  int64_t epochs = 3;
  int64_t batch = 128;
  int replicas = 2;  // of MirroredStrategy
  int ps = 0;        // parameter servers in this process instead, if there are any,
  int workers = 2;   // and their workers
  uint64_t seed = 1;
};

// Ends the program on --help (0) and on a wrong command line (64).
Options parse_options(int argc, char** argv);

}  // namespace tabular
