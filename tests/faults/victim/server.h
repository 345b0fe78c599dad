// Makes processes in which libtorch is loaded already: a sweep starts thousands, and loading takes
// half a second.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace cohort::faults {

// Runs one command; its exit status. `ready` stops the process if the command has something to be
// stopped in.
using Command =
    std::function<int(const std::vector<std::string>& arguments, std::function<void()> ready)>;

// Answers lines of stdin on stdout until stdin ends:
//   start OUT COMMAND ARGUMENT...   "PID": a new process, which writes to the file OUT, has run up
//                                   to where it is ready and then stopped (SIGSTOP), or has ended
//   wait PID                        when it has ended or stopped once more: "exit STATUS", "signal
//                                   NUMBER" or "stopped 0"
// Processes die with the server. The server has one thread, so that a plain fork loses none.
void serve(const Command& command);

}  // namespace cohort::faults
