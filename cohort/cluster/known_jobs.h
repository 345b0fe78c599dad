// The names of jobs that have a meaning.
#pragma once

#include <string_view>

namespace cohort::internal {

inline constexpr char kChief[] = "chief";
inline constexpr char kWorker[] = "worker";
inline constexpr char kPs[] = "ps";
inline constexpr char kEvaluator[] = "evaluator";

inline constexpr std::string_view kKnownJobsText = "chief, worker, ps and evaluator";

constexpr bool is_known_job(std::string_view job) {
  return job == kChief || job == kWorker || job == kPs || job == kEvaluator;
}

}  // namespace cohort::internal
