#include "cohort/train/checkpoints_iterator.h"

#include <algorithm>
#include <thread>

#include "cohort/core/durations.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/threads/backoff.h"
#include "cohort/core/threads/bounded_wait.h"
#include "cohort/train/checkpoint.h"
#include "cohort/train/saving/latest_checkpoint.h"

namespace cohort::train {

CheckpointsIterator::CheckpointsIterator(std::string directory, CheckpointsIteratorOptions options)
    : directory_(std::move(directory)), options_(std::move(options)) {
  internal::check_not_negative("checkpoints_iterator: min_interval", options_.min_interval);
  internal::check_not_negative("checkpoints_iterator: poll_interval", options_.poll_interval);
  if (options_.timeout)
    internal::check_not_negative("checkpoints_iterator: timeout", *options_.timeout);
  options_.min_interval = internal::bounded_wait(options_.min_interval);
  options_.poll_interval = internal::bounded_wait(options_.poll_interval);
  if (options_.timeout) options_.timeout = internal::bounded_wait(*options_.timeout);
}

CheckpointsIterator checkpoints_iterator(std::string directory,
                                         CheckpointsIteratorOptions options) {
  return CheckpointsIterator(std::move(directory), std::move(options));
}

std::optional<std::string> CheckpointsIterator::next() {
  if (given_at_) std::this_thread::sleep_until(*given_at_ + options_.min_interval);
  while (true) {
    if (auto path = wait_for_another()) {
      given_at_ = Clock::now();
      latest_ = path;
      return path;
    }
    if (!options_.timeout_fn || options_.timeout_fn()) return std::nullopt;
  }
}

// What is wrong with the directory is said once, and not at each look.
std::optional<std::string> CheckpointsIterator::look() {
  internal::FoundLatest found =
      internal::look_for_latest(internal::posix_file_system(), directory_);
  if (!found.problem.empty() && found.problem != problem_) internal::log_warning(found.problem);
  problem_ = std::move(found.problem);
  return std::move(found.path);
}

std::optional<std::string> CheckpointsIterator::wait_for_another() {
  constexpr auto kLogInterval = std::chrono::minutes(1);
  const auto start = Clock::now();
  const auto deadline = options_.timeout ? start + *options_.timeout : Clock::time_point::max();
  auto next_log = start + kLogInterval;
  internal::Backoff looks(std::max(options_.poll_interval, std::chrono::milliseconds(1)));
  while (true) {
    std::optional<std::string> path = look();
    if (path && path != latest_) return path;
    const auto now = Clock::now();
    if (now >= deadline) {
      internal::log_info("no new checkpoint in '", directory_, "' for ", options_.timeout->count(),
                         " ms");
      return std::nullopt;
    }
    if (now >= next_log) {
      next_log += kLogInterval;
      internal::log_info("still waiting for a new checkpoint in '", directory_, "'");
    }
    looks.sleep(deadline);
  }
}

}  // namespace cohort::train
