// A thread that writes checkpoints, one at a time.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cohort/core/program/process.h"
#include "cohort/core/threads/worker_thread.h"

namespace cohort::internal {

// Thread safety: all calls from one thread.
class BackgroundSaver {
 public:
  // most_wait: how long its end waits for the job under way.
  explicit BackgroundSaver(std::chrono::milliseconds most_wait = std::chrono::minutes(30));
  // Waits for the job under way: half a save would be no use. Every 10 s the log says for what. A
  // job that is stuck even longer (with its disk) is left to its thread, which holds what the job
  // needs. Logs an error that nobody asked for.
  ~BackgroundSaver();
  BackgroundSaver(const BackgroundSaver&) = delete;
  BackgroundSaver& operator=(const BackgroundSaver&) = delete;

  // Runs `job`, which saves `path` and may outlive this. Only when none is under way.
  // Errors, of the waits too: FailedPrecondition (in a child of the process whose thread saves).
  void start(std::string path, std::function<void()> job);
  // Waits until no job is under way. If one still is after `timeout`, returns what to say of that
  // (names the path): the job may itself end with DeadlineExceeded. Errors: those of the job, once.
  [[nodiscard]] std::optional<std::string> wait_for(std::chrono::milliseconds timeout);
  // The same. Errors: also DeadlineExceeded (the job is still under way).
  void wait(std::chrono::milliseconds timeout);

 private:
  bool wait_for_end();
  void check_process() const;

  const std::chrono::milliseconds most_wait_;
  std::string path_;                      // of the latest job
  std::unique_ptr<WorkerThread> thread_;  // made by the first job
  HomeProcess home_;                      // of thread_
};

}  // namespace cohort::internal
