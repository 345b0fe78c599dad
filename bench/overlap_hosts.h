// bench_overlap over a real network: each task is a process on a host of its own.
#pragma once

#include <string>
#include <vector>

namespace bench {

// What a task runs; arguments: the backend ("gloo" or "calls").
std::string overlap_on_a_host(const std::vector<std::string>& arguments);

// Measures the backward pass, then everything over links on which the exchange takes as long, and
// prints it. Takes root. Returns what the program ends with.
int measure_overlap_between_hosts(const std::string& backend);

}  // namespace bench
