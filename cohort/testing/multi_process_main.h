// The entry of a program that tests jobs of many processes with MultiProcessRunner.
//
//   int main(int argc, char** argv) {
//     return cohort::testing::multi_process_main(argc, argv, {{"train", train}}, run_tests);
//   }
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace cohort::testing {

// What a task runs: it finds its place in the cluster in TF_CONFIG, gets the runner's arguments,
// and returns what the runner's caller gets. What it throws is thrown there too, by the same class.
using TaskFunction = std::function<std::string(const std::vector<std::string>& arguments)>;
using TaskFunctions = std::map<std::string, TaskFunction>;

// In a process that a MultiProcessRunner started: runs its function, reports the result to the
// runner, and returns the exit code (0, or 1 if the function threw). In any other process: returns
// program(argc, argv). Call it first in main: what stands before it runs in each task as well.
int multi_process_main(int argc, char** argv, const TaskFunctions& functions,
                       const std::function<int(int, char**)>& program);

}  // namespace cohort::testing
