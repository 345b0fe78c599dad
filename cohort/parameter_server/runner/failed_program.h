// What an exception leaves of a task's program that it has ended after its strategy was made and before its
// first call of fit, evaluate or predict: somebody has to tell the cluster, which waits for it.
#pragma once

#include <memory>
#include <utility>

#include "cohort/cluster/server.h"
#include "cohort/core/program/failure_frame.h"
#include "cohort/parameter_server/parameter_server_core.h"

namespace cohort::internal {

class FailedProgram final : public FailureListener {
 public:
  // `setup`: of the strategy that was there.
  explicit FailedProgram(ParameterServerCore::Setup setup) : setup_(std::move(setup)) {}

  // Returns when the others know of it, or in seconds.
  void on_failure(const std::exception_ptr& error) noexcept override;

 private:
  const ParameterServerCore::Setup setup_;
};

// The same of a task that has served the cluster: it stays until its coordinator knows why it leaves.
class FailedServer final : public FailureListener {
 public:
  explicit FailedServer(std::unique_ptr<distribute::Server> server) : server_(std::move(server)) {}

  // Returns when the server has stopped.
  void on_failure(const std::exception_ptr& error) noexcept override;

 private:
  std::unique_ptr<distribute::Server> server_;  // null: it has left
};

}  // namespace cohort::internal
