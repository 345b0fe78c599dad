// Reads input pipelines on command: one command a line on stdin, one line on stdout. bench/input.py
// gives the commands, beside tf.data's turns.
//
//   bench_input DIRECTORY              where bench/input_data.py wrote its files
//   read WORK plain|parallel SECONDS   seconds that a pass over the pipeline takes
//   limit WORK plain SECONDS           seconds of reading and checksumming the bytes of its files
//   check WORK plain|parallel          number of elements, and a checksum of them in any order
//   version                            what this is, in words
#include <cohort/cohort.h>
#include <torch/version.h>

#include <iostream>
#include <sstream>

#include "checksum.h"
#include "pipelines.h"
#include "timing.h"

namespace tf = cohort;

namespace {

std::string answer(const bench::Pipelines& pipelines, const std::string& line) {
  std::istringstream words(line);
  std::string command, work, variant;
  double seconds = 0;
  words >> command >> work >> variant >> seconds;
  std::ostringstream out;
  if (command == "version") {
    out << "Cohort " << tf::kVersion << " on libtorch " << TORCH_VERSION;
  } else if (command == "check") {
    bench::Checksum checksum;
    pipelines.read(work, variant == "parallel",
                   [&](const tf::Structure& batch) { checksum.add(batch); });
    out << checksum.elements() << ' ' << checksum.value();
  } else if (command == "read") {
    int64_t rows = 0;
    out << bench::time_steps(seconds, [&](int64_t) {
      pipelines.read(work, variant == "parallel", [&](const tf::Structure& batch) {
        rows += batch.flatten().front().sizes().front();
      });
    });
  } else if (command == "limit") {
    out << bench::time_steps(seconds, [&](int64_t) { pipelines.checksum_files(work); });
  } else {
    throw tf::InvalidArgumentError("unknown command");
  }
  return out.str();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: bench_input DIRECTORY < commands\n";
    return 64;
  }
  tf::config::keep_freed_memory();
  tf::logging::set_level(tf::logging::Level::kWarning);
  tf::config::set_logical_device_configuration("CPU", 2);
  const bench::Pipelines pipelines(argv[1]);
  for (std::string line; std::getline(std::cin, line);) {
    try {
      std::cout << answer(pipelines, line) << std::endl;
    } catch (const std::exception& error) {
      std::cerr << "bench_input: " << line << ": " << error.what() << '\n';
      return 1;
    }
  }
  return 0;
}
