// The command line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tabular {

struct Options {
  std::string csv;        // empty: a table is made, `out`/table.csv
  int64_t rows = 20'000;  // of a table that is made
  std::string label = "bought";
  std::vector<std::string> texts = {"comment"};
  std::string na_value = "NA";
  int64_t epochs = 3;
  int64_t batch = 128;
  std::string strategy = "mirrored";  // or "parameter_server"
  int replicas = 2;                   // of "mirrored"
  int workers = 2, ps = 2;            // of "parameter_server": servers in this process
  uint64_t seed = 1;
  std::string out;  // where the transform and the model are written
};

// Ends the program on --help (0) and on a wrong command line (64).
Options parse_options(int argc, char** argv);

}  // namespace tabular
