// The demo's command line.
#pragma once

#include <cstdint>
#include <string>

namespace custom_training {

struct Options {
  std::string data;  // folder with the four IDX files; empty: cache, download or drawings
  std::string dataset = "fashion_mnist";
  int replicas = 1;
  int epochs = 10;
  int64_t global_batch = 128;
  uint64_t seed = 2;
  std::string checkpoint_dir = "training_checkpoints";
  bool profile = false;       // print where the time of the training steps goes
  std::string trace;          // a file for a Chrome trace of them
  bool all_sections = false;  // the guide's other forms of the loop, too
};

// Prints help or what is wrong, and ends the program, where the command line says so (exit 0, 64).
Options parse_options(int argc, char** argv);

}  // namespace custom_training
