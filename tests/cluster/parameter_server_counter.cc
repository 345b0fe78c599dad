// The program of parameter_server_counting.h, started by `cohort launch`
// (tests/faults/chaos_of_ps.py). Arguments: a directory, how far to count.
#include "parameter_server_counting.h"

int main(int argc, char** argv) {
  return cohort::run_program([&] {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    if (arguments.size() != 2) throw cohort::InvalidArgumentError("give a directory and a number");
    const bool is_chief =
        cohort::distribute::cluster_resolver::TFConfigClusterResolver().task_type() == "chief";
    const std::string result = cohort::parameter_server_faults::count(arguments);
    if (!is_chief) return std::stoi(result);
    std::printf("counters: %s\n", result.c_str());
    return 0;
  });
}
