// Guide 003, distributed input, on logical CPUs of this machine. Takes no arguments; prints the
// same on every machine.
#include <cohort/cohort.h>

#include <iostream>

#include "sections.h"

int main(int argc, char**) {
  if (argc > 1) {
    std::cerr << "usage: distributed_input\n";
    return 64;
  }
  return cohort::run_program([] {
    cohort::logging::set_level(cohort::logging::Level::kError);
    cohort::config::set_logical_device_configuration("CPU", 5);
    distributed_input::distribute_a_dataset();
    distributed_input::shard_between_workers();
    distributed_input::run_steps_over_it();
    distributed_input::iterate();
    distributed_input::batch_anew();
    distributed_input::keep_the_order_of_outputs();
    distributed_input::distribute_values();
    distributed_input::distribute_from_functions();
    distributed_input::preprocess();
  });
}
