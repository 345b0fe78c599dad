// What an exception leaves of a task's program that it has ended after its strategy was made and
// before its first call of fit, evaluate or predict: somebody has to tell the cluster, which waits
// for it.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "cohort/cluster/server.h"
#include "cohort/core/program/failure_frame.h"

namespace cohort::internal {

class FailedProgram final : public FailureListener {
 public:
  // `server`: the coordinator's; null in other tasks, in which `fail` does what a call of fit does
  // that has failed so.
  FailedProgram(std::shared_ptr<distribute::Server> server,
                std::function<void(const std::exception_ptr&)> fail)
      : server_(std::move(server)), fail_(std::move(fail)) {}

  // Returns when the others know of it, or in seconds.
  void on_failure(const std::exception_ptr& error) noexcept override;

 private:
  const std::shared_ptr<distribute::Server> server_;
  const std::function<void(const std::exception_ptr&)> fail_;
};

// The same of a task that has served the cluster: it stays until its coordinator knows why it
// leaves.
class FailedServer final : public FailureListener {
 public:
  explicit FailedServer(std::unique_ptr<distribute::Server> server) : server_(std::move(server)) {}

  // Returns when the server has stopped.
  void on_failure(const std::exception_ptr& error) noexcept override;

 private:
  std::unique_ptr<distribute::Server> server_;  // null: it has left
};

}  // namespace cohort::internal
