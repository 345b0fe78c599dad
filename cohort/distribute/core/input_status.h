// The status of their input that the processes of a sync group exchange before each step, so that
// all of them end, fail and go on at the same step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

namespace cohort::internal {

// The status of one process, or of several together. Input pipelines are identified by their
// numbers in the sync group; where several apply, the largest is given; -1: none.
struct InputStatus {
  bool has_data = false;  // for at least one replica
  // An element of this pipeline failed: the step is left out by all processes.
  int failed = -1;
  // This pipeline missed its read deadline: no process consumes anything, and the step can be
  // requested again.
  int late = -1;
  // This pipeline has no data, and the shape of a batch without rows is unknown: as long as others
  // have data, their steps are left out.
  int unknown_spec = -1;

  bool operator==(const InputStatus&) const = default;
};

// The combined status: the larger value of each field. A group may reduce the fields as four
// numbers.
inline InputStatus combine(const InputStatus& a, const InputStatus& b) {
  return {.has_data = a.has_data || b.has_data,
          .failed = std::max(a.failed, b.failed),
          .late = std::max(a.late, b.late),
          .unknown_spec = std::max(a.unknown_spec, b.unknown_spec)};
}

// The step that a process is about to read. Processes that read different steps of one dataset
// would read some of its rows twice and others never.
struct InputPlace {
  static constexpr int64_t kRestored = -1;

  int64_t dataset =
      0;             // that the group's processes have distributed, by a number that all know it by
  int64_t pass = 0;  // over it, or kRestored: from a position that was restored
  int64_t step = 0;  // of that pass, or from that position on

  bool operator==(const InputPlace&) const = default;
};

// Waits for the group's answer. Called at most once.
using InputAnswer = std::function<InputStatus()>;

}  // namespace cohort::internal
