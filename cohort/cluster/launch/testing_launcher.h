// Jobs of shell scripts, for tests of the launcher.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cohort/cluster/launch/launcher.h"

namespace cohort::internal {

// A job whose tasks are shell scripts that find themselves in TF_CONFIG.
struct LauncherTest : testing::Test {
  LauncherTest() {
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    std::string pattern = testing::TempDir() + "cohort_launcher_test.XXXXXX";
    folder = ::mkdtemp(pattern.data());
  }
  ~LauncherTest() override {
    for (int fd : ends) ::close(fd);
    std::filesystem::remove_all(folder);
  }

  LaunchResult run(JobOptions job, const std::string& script, LaunchOptions options = {},
                   std::chrono::milliseconds failure_grace = std::chrono::milliseconds(20)) {
    job.program = "/bin/sh";
    // $task: "worker 1".
    job.arguments = {
        "-c",
        "task=$(echo \"$TF_CONFIG\" | sed 's/.*type\":\"//;s/\",\"index\":/ /;s/}}//')\n"
        "cd '" +
            folder + "'\n" + script};
    JobPlan plan = make_plan(job, {});
    std::vector<int> ports;
    for (int i = 0; i < num_servers(plan); ++i) ports.push_back(i + 1);
    set_addresses(plan, ports);
    if (options.out.fd < 0) options.out.fd = ends[1];
    options.err.fd = ends[1];
    const LaunchOptions standard;  // too slow for a test
    if (options.restart_delay == standard.restart_delay) {
      options.restart_delay = std::chrono::milliseconds(1);
    }
    options.failure_grace = failure_grace;
    if (options.grace == standard.grace) options.grace = std::chrono::seconds(20);
    const LaunchResult result = launch(plan, options);
    std::array<char, 60'000> block;
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    const ssize_t count = ::read(ends[0], block.data(), block.size());
    output = count > 0 ? std::string(block.data(), static_cast<size_t>(count)) : "";
    return result;
  }

  bool has(const std::string& file) const { return std::filesystem::exists(folder + "/" + file); }
  std::string text_of(const std::string& file) const {
    std::ostringstream text;
    text << std::ifstream(folder + "/" + file).rdbuf();
    return std::move(text).str();
  }
  static std::thread interrupt_when(int signal, std::function<bool()> condition) {
    return std::thread([signal, condition = std::move(condition), to = ::pthread_self()] {
      while (!condition()) std::this_thread::yield();
      ::pthread_kill(to, signal);
    });
  }

  std::array<int, 2> ends;
  std::string folder;
  std::string output;
};

// `$1` in a script: waits until the launcher has seen the end of the process that note_me left
// there.
inline constexpr char kWaitForEnd[] =
    "note_me() { echo $$ > \"new $1\"; mv \"new $1\" \"$1\"; }\n"
    "wait_for_end() { while [ ! -e \"$1\" ]; do sleep 0.001; done\n"
    "  while kill -0 $(cat \"$1\") 2>/dev/null; do sleep 0.001; done; }\n";

}  // namespace cohort::internal
