#include "cohort/cluster/launch/elastic_rules.h"

#include <algorithm>

#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

bool has_failed(const ElasticWorker& worker) {
  return !worker.runs && worker.status && !worker.status->ok();
}

bool has_ended_well(const ElasticWorker& worker) {
  return !worker.runs && worker.status && worker.status->ok();
}

int first_failure(const std::vector<ElasticWorker>& workers) {
  const auto comes_before = [](const ElasticWorker& a, const ElasticWorker& b) {
    if (has_failed(a) != has_failed(b)) return has_failed(a);
    if (a.may_return != b.may_return) return b.may_return;
    return a.ended < b.ended;
  };
  return std::min_element(workers.begin(), workers.end(), comes_before)->status->shell_code();
}

}  // namespace

bool may_come_back(const ExitStatus& status) {
  constexpr int kWrongCall = 64;
  return !status.ok() && status.shell_code() != kWrongCall;
}

ElasticVerdict judge(const std::vector<ElasticWorker>& workers, int min_workers) {
  const auto count = [&workers](const auto& which) {
    return std::count_if(workers.begin(), workers.end(), which);
  };
  const auto running = count([](const ElasticWorker& worker) { return worker.runs; });
  const auto late = count([](const ElasticWorker& worker) { return worker.came_late; });
  const auto done = count(has_ended_well);
  const auto left = running + done + count([](const ElasticWorker& worker) {
                      return has_failed(worker) && worker.may_return;
                    });
  if (left < min_workers) {
    return {ElasticVerdict::kFailed, first_failure(workers),
            str(left == 0 ? "none" : str("only ", left), " of the ", min_workers,
                min_workers == 1 ? " worker" : " workers", " that the job needs ",
                left > 1 ? "are" : "is", " left")};
  }
  if (running == 0 && done == 0) {
    return {ElasticVerdict::kFailed, first_failure(workers),
            "no worker runs from which another could take over"};
  }
  if (running == late && done > 0) return {.next = ElasticVerdict::kDone};
  return {};
}

}  // namespace cohort::internal
