// A server in a process of its own, for tests that kill, starve or flood it. Prints its address and
// serves until its input ends.
//
//   grpc_testing_server [CERTIFICATE_DIRECTORY]
#include <unistd.h>

#include <iostream>

#include "cohort/cluster/grpc/testing_services.h"
#include "cohort/cluster/security/make_certificates.h"

int main(int argc, char** argv) {
  namespace rpc = cohort::internal::rpc;
  cohort::distribute::Credentials credentials;
  if (argc > 1) credentials = cohort::internal::security::credentials_in(argv[1], {"ps", 0});
  rpc::TestServer server(credentials);
  std::cout << server.server->address() << std::endl;
  char byte = 0;
  while (::read(STDIN_FILENO, &byte, 1) > 0) {
  }
  return 0;
}
