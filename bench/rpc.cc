// Calls between two processes of this host, for bench/rpc.py: a command a line on stdin,
// "SIDE WORK SECONDS", is answered with calls per second.
//
//   bench_rpc DIRECTORY            the client; starts the server
//   bench_rpc --serve DIRECTORY    the server; prints the address of each side
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "bench/rpc_peers.h"
#include "cohort/cluster/grpc/grpc_channel.h"
#include "cohort/cluster/grpc/grpc_server.h"
#include "cohort/cluster/rpc/dispatcher.h"
#include "cohort/cluster/rpc/identity.h"
#include "cohort/cluster/same_host/host_channel.h"
#include "cohort/cluster/same_host/host_server.h"
#include "cohort/cluster/security/make_certificates.h"
#include "cohort/cluster/security/security.h"
#include "cohort/core/program/run_program.h"

namespace cohort::bench {
namespace {

namespace rpc = internal::rpc;
namespace security = internal::security;

constexpr size_t kBulk = size_t{64} << 20;
const TaskId kServer{"ps", 0};
const TaskId kClient{"worker", 0};

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return std::move(text).str();
}

TlsFiles tls_of(const std::string& directory, const TaskId& task) {
  const distribute::Credentials files = security::credentials_in(directory, task);
  return {text_of(files.ca_file), text_of(files.certificate_file), text_of(files.key_file)};
}

class TakeService : public rpc::Service {
 public:
  std::string_view name() const override { return "bench"; }
  std::span<const rpc::MethodSpec> methods() const override { return kMethods; }
  void handle(size_t, std::unique_ptr<rpc::Call> call) override { call->reply({}); }

 private:
  static constexpr rpc::MethodSpec kMethods[] = {{"take", rpc::kEverybody, kBulk}};
};

class CohortServer : public Server {
 public:
  explicit CohortServer(const distribute::Credentials& credentials)
      : dispatcher_(
            {.self = kServer, .role_of = [](const TaskId&) { return rpc::Role::kWorker; }}) {
    dispatcher_.add(std::make_shared<TakeService>());
    host_server_ = std::make_unique<rpc::HostServer>(dispatcher_, rpc::HostServerOptions{});
    server_ = std::make_unique<rpc::GrpcServer>(
        dispatcher_, std::make_unique<rpc::Listener>(rpc::ListenerOptions{}),
        rpc::GrpcServerOptions{.security = security::Security::load(credentials, kServer),
                               .settings = {}});
  }
  std::string address() const override { return server_->address(); }

 private:
  rpc::Dispatcher dispatcher_;
  std::unique_ptr<rpc::HostServer> host_server_;
  std::unique_ptr<rpc::GrpcServer> server_;
};

enum class Way { kGrpc, kSameHost };

class CohortClient : public Client {
 public:
  CohortClient(const std::string& address, const distribute::Credentials& credentials, Way way)
      : way_(way) {
    const auto self = std::make_shared<rpc::Identity>(kClient, 1);
    channel_ = rpc::prefer_same_host(
        rpc::make_grpc_channel({.peer = kServer,
                                .address = address,
                                .self = self,
                                .security = security::Security::load(credentials, kClient),
                                .settings = {}}),
        self, {});
  }
  void call(const char* data, size_t size) override {
    rpc::Message request{.control = ""};
    if (size > 0) request.bulk.push_back({.owner = nullptr, .data = data, .size = size});
    channel_->call("bench/take", std::move(request),
                   {.timeout = std::chrono::seconds(30), .same_host = way_ == Way::kSameHost});
  }

 private:
  const Way way_;
  std::shared_ptr<rpc::Channel> channel_;
};

int serve(const std::string& directory) {
  std::map<std::string, std::unique_ptr<Server>> servers;
  servers["cohort"] = std::make_unique<CohortServer>(distribute::Credentials{});
  servers["cohort_tls"] =
      std::make_unique<CohortServer>(security::credentials_in(directory, kServer));
  servers["grpc"] = make_grpc_server({});
  servers["grpc_tls"] = make_grpc_server(tls_of(directory, kServer));
  servers["socket"] = make_socket_server(directory + "/socket");
  for (const auto& [side, server] : servers) std::cout << side << ' ' << server->address() << '\n';
  std::cout << std::endl;
  char byte = 0;
  while (::read(STDIN_FILENO, &byte, 1) > 0) {  // until the client is gone
  }
  ::_exit(0);  // the client's connections need no goodbye
}

// This program again, as the server: its addresses by side. It ends with this process.
std::map<std::string, std::string> start_server(const std::string& directory) {
  int to_server[2];
  int from_server[2];
  if (::pipe(to_server) != 0 || ::pipe(from_server) != 0) throw InternalError("no pipe");
  if (::fork() == 0) {
    ::dup2(to_server[0], STDIN_FILENO);
    ::dup2(from_server[1], STDOUT_FILENO);
    ::close(to_server[1]);
    ::close(from_server[0]);
    ::execl("/proc/self/exe", "bench_rpc", "--serve", directory.c_str(), nullptr);
    ::_exit(127);
  }
  ::close(to_server[0]);
  ::close(from_server[1]);
  std::map<std::string, std::string> addresses;
  std::FILE* const lines = ::fdopen(from_server[0], "r");
  char side[64];
  char address[256];
  char line[512];
  while (std::fgets(line, sizeof line, lines) != nullptr &&
         std::sscanf(line, "%63s %255s", side, address) == 2) {
    addresses[side] = address;
  }
  return addresses;
}

double calls_per_second(Client& client, const std::vector<char>& bulk, double seconds) {
  using Clock = std::chrono::steady_clock;
  client.call(bulk.data(), bulk.size());  // connects, and has the memory there
  const auto begin = Clock::now();
  int64_t calls = 0;
  double passed = 0;
  do {
    client.call(bulk.data(), bulk.size());
    ++calls;
    passed = std::chrono::duration<double>(Clock::now() - begin).count();
  } while (passed < seconds);
  return static_cast<double>(calls) / passed;
}

int answer_commands(const std::string& directory) {
  security::make_certificates({.cluster = "bench",
                               .tasks = {kServer, kClient},
                               .directory = directory,
                               .hosts = {"localhost"}});
  const auto addresses = start_server(directory);
  const TlsFiles tls = tls_of(directory, kClient);
  std::map<std::string, std::unique_ptr<Client>> clients;
  for (const auto& [side, way] :
       {std::pair{"cohort", Way::kGrpc}, {"cohort_host", Way::kSameHost}}) {
    clients[side] =
        std::make_unique<CohortClient>(addresses.at("cohort"), distribute::Credentials{}, way);
  }
  clients["cohort_tls"] = std::make_unique<CohortClient>(
      addresses.at("cohort_tls"), security::credentials_in(directory, kClient), Way::kGrpc);
  clients["grpc_callback"] = make_grpc_client(addresses.at("grpc"), {}, false);
  clients["grpc_queue"] = make_grpc_client(addresses.at("grpc"), {}, true);
  clients["grpc_tls_callback"] = make_grpc_client(addresses.at("grpc_tls"), tls, false);
  clients["grpc_tls_queue"] = make_grpc_client(addresses.at("grpc_tls"), tls, true);
  clients["socket"] = make_socket_client(addresses.at("socket"));
  const std::vector<char> nothing;
  const std::vector<char> bulk(kBulk, 'x');
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string side;
    std::string work;
    double seconds = 0;
    words >> side >> work >> seconds;
    std::cout << calls_per_second(*clients.at(side), work == "bulk" ? bulk : nothing, seconds)
              << std::endl;
  }
  ::_exit(0);
}

}  // namespace
}  // namespace cohort::bench

int main(int argc, char** argv) {
  return cohort::run_program([&] {
    if (argc == 3 && std::string(argv[1]) == "--serve") return cohort::bench::serve(argv[2]);
    if (argc == 2) return cohort::bench::answer_commands(argv[1]);
    throw cohort::InvalidArgumentError("usage: bench_rpc DIRECTORY");
  });
}
