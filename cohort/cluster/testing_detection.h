// What tests share that time how real processes notice a fault: settings, a clock, the line that
// says when a task ended, repetitions and figures.
#pragma once

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "cohort/cluster/server.h"
#include "cohort/core/error.h"

namespace cohort::detection {

// The settings named Test in docs/faults.md.
inline distribute::ServerOptions test_settings(std::chrono::milliseconds start_timeout) {
  using namespace std::chrono_literals;
  return {.keepalive_time = 1s,
          .keepalive_timeout = 1s,
          .start_timeout = start_timeout,
          .heartbeat_interval = 500ms,
          .heartbeat_timeout = 2s};
}

// On the clock that all processes share.
inline double now_ms() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

// "ended at 51234.5: UNAVAILABLE: lost ...".
inline void print_end(const Error& error) {
  std::printf("ended at %.1f: %s: %s\n", now_ms(), std::string(code_name(error.code())).c_str(),
              error.what());
  std::fflush(stdout);
}

// What a line says behind its first " at ".
inline double time_in(const std::string& line) {
  return std::stod(line.substr(line.find(" at ") + 4));
}

// COHORT_FAULT_REPETITIONS, where it is set.
inline int repetitions(int otherwise) {
  const char* more = std::getenv("COHORT_FAULT_REPETITIONS");
  return more ? std::atoi(more) : otherwise;
}

// "median 8 ms, worst 12 ms of 20".
inline std::string summary(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  char text[100];
  std::snprintf(text, sizeof text, "median %.0f ms, worst %.0f ms of %zu", times[times.size() / 2],
                times.back(), times.size());
  return text;
}

}  // namespace cohort::detection
