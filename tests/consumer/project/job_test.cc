// A user's own test of two tasks, with what docs/testing.md says to link.
#include <cohort/testing/allocation_counter.h>
#include <cohort/testing/multi_process_main.h>
#include <cohort/testing/multi_process_runner.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

using namespace cohort::testing;

namespace {

std::string fail_in_task_1(const std::vector<std::string>& arguments) {
  const std::string cluster = std::getenv("TF_CONFIG");
  if (cluster.find("\"index\": 1") != std::string::npos) {
    throw cohort::UnavailableError("gone " + arguments[0]);
  }
  return "done";
}

int test() {
  const AllocationCounter counter;
  delete new std::string(100, 'x');
  std::cout << (counter.counts().mallocs > 0 ? "counts" : "does not count") << '\n';

  MultiProcessRunner runner({.jobs = {{"worker", 2}}, .function = "fail", .arguments = {"away"}});
  runner.start();
  try {
    runner.join();
  } catch (const cohort::UnavailableError& error) {
    std::cout << "caught from " << error.task() << '\n';
    return 0;
  }
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  return multi_process_main(argc, argv, {{"fail", fail_in_task_1}},
                            [](int, char**) { return test(); });
}
