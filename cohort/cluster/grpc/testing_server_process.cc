#include "cohort/cluster/grpc/testing_server_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>

extern char** environ;

namespace cohort::internal::rpc {

ServerProcess::ServerProcess(const std::string& shell, const std::string& arguments) {
  int input[2];
  int output[2];
  if (::pipe2(input, O_CLOEXEC) != 0 || ::pipe2(output, O_CLOEXEC) != 0) {
    throw std::runtime_error("no pipe");
  }
  const UniqueFd child_input(input[0]);
  const UniqueFd child_output(output[1]);
  input_ = UniqueFd(input[1]);
  output_ = UniqueFd(output[0]);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, child_input.get(), 0);
  ::posix_spawn_file_actions_adddup2(&actions, child_output.get(), 1);
  std::string command = shell + " " + COHORT_TESTING_SERVER + " " + arguments;
  std::string name = "sh";
  std::string option = "-c";
  char* argv[] = {name.data(), option.data(), command.data(), nullptr};
  const int error = ::posix_spawn(&pid_, "/bin/sh", &actions, nullptr, argv, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::runtime_error("cannot start the server");
  char byte = 0;
  while (::read(output_.get(), &byte, 1) == 1 && byte != '\n') address_ += byte;
}

ServerProcess::~ServerProcess() {
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

}  // namespace cohort::internal::rpc
