// A thread that writes checkpoints, one at a time.
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "cohort/core/process.h"

namespace cohort::internal {

// Thread safety: all calls from one thread.
class BackgroundSaver {
 public:
  BackgroundSaver() = default;
  // Waits for the job under way: half a save would be no use. Logs an error that nobody asked for.
  ~BackgroundSaver();

  // Runs `job`, which saves `path`. Only when none is under way.
  // Errors, of wait too: FailedPrecondition (in a child of the process whose thread saves).
  void start(std::string path, std::function<void()> job);
  // Until no job is under way. Errors: DeadlineExceeded (names the path), those of the job, once.
  void wait(std::chrono::milliseconds timeout);

 private:
  void work();
  void rethrow();
  void check_process() const;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string path_;
  std::function<void()> job_;  // empty: none under way
  std::exception_ptr error_;
  bool stop_ = false;
  std::thread thread_;  // started by the first job
  HomeProcess home_;    // of thread_
};

}  // namespace cohort::internal
