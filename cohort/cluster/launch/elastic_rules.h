// What becomes of an elastic job when one of its workers has ended.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "cohort/cluster/launch/child_process.h"

namespace cohort::internal {

// What the launcher knows of a worker.
struct ElasticWorker {
  bool runs = false;
  bool came_late = false;                           // runs, and was started again a short while ago
  bool may_return = false;                          // has failed, and is, or may be, started again
  std::optional<ExitStatus> status = std::nullopt;  // of one that does not run
  std::chrono::steady_clock::time_point ended = {};
};

struct ElasticVerdict {
  // kDone: nobody is at work any more but workers that have come too late for it, if any. kFailed:
  // fewer workers are left than the job needs, or none runs from which another could take over.
  enum Next { kGoesOn, kDone, kFailed } next = kGoesOn;
  int exit_code = 0;        // kFailed: the first one of those that are lost for good, else of all
  std::string reason = "";  // kFailed
};

// Whether a worker that has ended so may do better when it starts again: not after a wrong call.
bool may_come_back(const ExitStatus& status);

// Workers that have ended well, that run and that may return are left.
ElasticVerdict judge(const std::vector<ElasticWorker>& workers, int min_workers);

}  // namespace cohort::internal
