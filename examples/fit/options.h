// The command line.
#pragma once

#include <cstdint>
#include <string>

namespace fit {

struct Options {
  std::string strategy = "mirrored";
  std::string data;  // folder with the four IDX files; empty: cache, download or drawings
  std::string dataset = "fashion_mnist";
  int64_t epochs = 3;
  int replicas = 2;  // of this process
  int64_t global_batch = 128;
  uint64_t seed = 2;
  int verbose = -1;
  std::string backup;       // BackupAndRestore's folder; empty: none
  std::string checkpoints;  // ModelCheckpoint's folder; empty: none
  std::string logs;         // TensorBoard's folder; empty: none
};

// Ends the program on --help (0) and on a wrong command line (64).
Options parse_options(int argc, char** argv);

}  // namespace fit
