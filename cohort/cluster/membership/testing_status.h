// A cluster at one moment, for tests of how it is shown.
#pragma once

#include <chrono>
#include <exception>

#include "cohort/cluster/membership/status_text.h"

namespace cohort::internal::membership {

inline ClusterStatus example_status() {
  using namespace std::chrono_literals;
  return {.coordinator = {"chief", 0},
          .address = "10.0.0.1:2222",
          .time = std::chrono::system_clock::time_point(1'800'000'000s + 250ms),
          .view = {.service = 0xc0ffee,
                   .term = 1,
                   .version = 9,
                   .generation = 3,
                   .members = {{.task = {"chief", 0},
                                .incarnation = 0xc0ffee,
                                .address = "10.0.0.1:2222",
                                .state = TaskState::kAlive,
                                .state_age = 3min + 5s,
                                .silence = 400ms,
                                .figures = {{"loss", 0.25}, {"steps/s", 1234.5}}},
                               {.task = {"worker", 0},
                                .incarnation = 0xbeef,
                                .address = "10.0.0.2:2222",
                                .state = TaskState::kLost,
                                .state_age = 61s,
                                .silence = 81s},
                               {.task = {"worker", 1},
                                .address = "10.0.0.3:2222",
                                .state = TaskState::kAwaited,
                                .state_age = 50h}},
                   .stale_refused = 7}};
}

}  // namespace cohort::internal::membership
