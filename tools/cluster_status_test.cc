#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "cohort/cluster/rpc/listening_socket.h"
#include "cohort/cluster/security/make_certificates.h"
#include "cohort/cluster/server.h"
#include "cohort/core/host/unique_fd.h"
#include "tools/cluster_commands.h"
#include "tools/exit_codes.h"

namespace cohort::tools {
namespace {

using distribute::Server;
using internal::rpc::listen_at;
using internal::rpc::listening_address;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// Two workers with certificates.
struct ClusterStatusCommand : testing::Test {
  ClusterStatusCommand() {
    std::string pattern = testing::TempDir() + "cohort_cluster_status_test.XXXXXX";
    root = ::mkdtemp(pattern.data());
    internal::security::make_certificates(
        {.cluster = "a", .tasks = {{"worker", 0}, {"worker", 1}}, .directory = root});
    for (int i = 0; i < 2; ++i) {
      sockets.push_back(listen_at("127.0.0.1", 0));
      addresses.push_back("127.0.0.1:" +
                          std::to_string(listening_address(sockets.back().get()).port));
    }
    options.certificates = root;
    options.timeout_seconds = 20;
    options.interval = std::chrono::milliseconds(1);
  }
  ~ClusterStatusCommand() override { std::filesystem::remove_all(root); }

  Server make(int worker) {
    return Server(train::ClusterSpec({{"worker", addresses}}),
                  {.job_name = "worker",
                   .task_index = worker,
                   .credentials = internal::security::credentials_in(root, {"worker", worker}),
                   .listen_fd = sockets[static_cast<size_t>(worker)].release()});
  }
  int show(const std::string& address) {
    options.address = address;
    out.str("");
    err.str("");
    return show_cluster_status(options, out, err);
  }
  void expect_one_line(const std::string& text) const {
    EXPECT_EQ(out.str(), "");
    EXPECT_THAT(err.str(), StartsWith("cohort: "));
    EXPECT_THAT(err.str(), HasSubstr(text));
    EXPECT_EQ(err.str().find('\n'), err.str().size() - 1);
  }

  std::string root;
  std::vector<internal::UniqueFd> sockets;
  std::vector<std::string> addresses;
  StatusOptions options;
  std::ostringstream out;
  std::ostringstream err;
};

// Until the task that coordinates has registered with itself.
void wait_until_alive(const Server& server) {
  while (server.coordination().view().tasks.at(0).status != distribute::TaskStatus::kAlive) {
    std::this_thread::yield();
  }
}

TEST_F(ClusterStatusCommand, ShowsEveryTask) {
  Server first = make(0);
  wait_until_alive(first);
  EXPECT_EQ(show(addresses[0]), kExitFailed);
  EXPECT_THAT(out.str(), StartsWith("2 tasks, 1 alive, 1 awaited, not started; "));
  Server second = make(1);
  first.coordination().wait_for_start();
  second.coordination().wait_for_start();
  EXPECT_EQ(show(addresses[1]), kExitOk);
  EXPECT_THAT(out.str(), StartsWith("2 tasks, 2 alive, generation 1; coordinated by "
                                    "/job:worker/task:0 at " +
                                    addresses[0] + "\n"));
  EXPECT_THAT(out.str(), HasSubstr("/job:worker/task:1  alive"));
  EXPECT_EQ(err.str(), "");
  options.json = true;
  EXPECT_EQ(show(addresses[1]), kExitOk);
  EXPECT_EQ(nlohmann::json::parse(out.str()).at("well"), true);
}

TEST_F(ClusterStatusCommand, WatchShowsItAgain) {
  Server first = make(0);
  wait_until_alive(first);
  options.watch = true;
  options.times = 2;
  EXPECT_EQ(show(addresses[0]), kExitFailed);
  const size_t second = out.str().find("\n\n2 tasks, 1 alive");
  EXPECT_NE(second, std::string::npos) << out.str();
  EXPECT_THAT(out.str(), Not(HasSubstr("\x1b")));
  options.json = true;
  EXPECT_EQ(show(addresses[0]), kExitFailed);
  std::istringstream lines(out.str());
  std::string line;
  int count = 0;
  for (; std::getline(lines, line); ++count) {
    EXPECT_EQ(nlohmann::json::parse(line).at("tasks").size(), 2u);
  }
  EXPECT_EQ(count, 2);
  options.json = false;
  options.terminal = true;
  EXPECT_EQ(show(addresses[0]), kExitFailed);
  EXPECT_THAT(out.str(), StartsWith("\x1b[2J\x1b[H2 tasks, "));
  EXPECT_THAT(out.str(), HasSubstr("\x1b[K\n\x1b[J\x1b[H2 tasks, "));
  EXPECT_THAT(out.str(), HasSubstr("\x1b[32malive\x1b[0m"));
}

TEST_F(ClusterStatusCommand, WatchGoesOnWhereTheClusterIsAway) {
  options.watch = true;
  options.times = 2;
  sockets[0].reset();
  EXPECT_EQ(show(addresses[0]), kExitUnreachable);
  const size_t first = err.str().find("cannot reach " + addresses[0]);
  ASSERT_NE(first, std::string::npos) << err.str();
  EXPECT_NE(err.str().find("cannot reach " + addresses[0], first + 1), std::string::npos);
}

TEST_F(ClusterStatusCommand, ErrorsAreOneLine) {
  options.timeout_seconds = 0.2;
  EXPECT_EQ(show(addresses[0]), kExitUnreachable);
  expect_one_line("did not answer");
  sockets[0].reset();
  options.timeout_seconds = 20;
  EXPECT_EQ(show(addresses[0]), kExitUnreachable);
  expect_one_line("cannot reach " + addresses[0]);
  EXPECT_EQ(show("nowhere"), kExitUsage);
  expect_one_line("'nowhere'");
  options.certificates = root + "/none";
  EXPECT_EQ(show(addresses[0]), kExitUsage);
  expect_one_line("cannot read");
}

}  // namespace
}  // namespace cohort::tools
