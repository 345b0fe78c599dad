// Runs grpc_testing_server.
#pragma once

#include <csignal>
#include <string>

#include "cohort/core/host/unique_fd.h"

namespace cohort::internal::rpc {

// The server ends with the object.
class ServerProcess {
 public:
  // `shell`: what comes before the program, as "ulimit -n 64; exec".
  explicit ServerProcess(const std::string& shell = "exec", const std::string& arguments = "");
  ~ServerProcess();

  const std::string& address() const { return address_; }
  void send(int signal) const { ::kill(pid_, signal); }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  UniqueFd input_;
  UniqueFd output_;
  std::string address_;
};

}  // namespace cohort::internal::rpc
