// Guide 000's preprocessing, and the pipeline of guide 001 that is built on it: where lookup layers
// go, and what comes out. Takes no arguments; prints the same on every machine.
#include <iostream>

#include "sections.h"

int main(int argc, char**) {
  if (argc > 1) {
    std::cerr << "usage: preprocessing\n";
    return 64;
  }
  return cohort::run_program([] {
    cohort::logging::set_level(cohort::logging::Level::kError);
    cohort::config::set_logical_device_configuration("CPU", 4);
    preprocessing::in_the_dataset();
    preprocessing::from_files();
    preprocessing::in_the_model();
    preprocessing::words_to_predictions();
  });
}
