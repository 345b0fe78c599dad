// MultiProcessRunner with tasks on hosts of their own. Needs root.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "cohort/testing/multi_process_main.h"
#include "cohort/testing/multi_process_runner.h"

namespace cohort::testing {
namespace {

using std::chrono::seconds;
using Arguments = std::vector<std::string>;

constexpr const char* kSilence = "silence of more than 4 numbers";

sockaddr_in host(const std::string& address) {
  sockaddr_in raw{};
  raw.sin_family = AF_INET;
  raw.sin_port = htons(2222);
  ::inet_pton(AF_INET, address.c_str(), &raw.sin_addr);
  return raw;
}

// Worker 0 says what it hears, and after which number it had missed some. Worker 1 counts aloud.
std::string count(const Arguments&) {
  const bool listens =
      std::string(std::getenv("TF_CONFIG")).find(R"("index": 0})") != std::string::npos;
  const int fd = ::socket(AF_INET, SOCK_DGRAM, 0);
  const sockaddr_in address = host("10.77.0.1");
  const auto* raw = reinterpret_cast<const sockaddr*>(&address);
  if (listens && ::bind(fd, raw, sizeof(address)) != 0) throw InternalError("cannot bind");
  for (int number = 1, last = 0;; ++number) {
    if (listens) {
      if (::recv(fd, &number, sizeof(number), 0) != sizeof(number))
        throw InternalError("no number");
      if (number > last + 4 && last > 0) std::printf("%s\n", kSilence);
      last = number;
      std::printf("heard one\n");
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));  // the pace of the sender
      if (::sendto(fd, &number, sizeof(number), 0, raw, sizeof(address)) < 0) {
        std::printf("cannot send %d\n", number);
      } else {
        std::printf("sent %d\n", number);
      }
    }
  }
}

int number_of(const std::string& line) { return std::stoi(line.substr(line.rfind(' '))); }

TEST(OwnHostsTest, PartitionsLoudAndSilent) {
  MultiProcessRunner runner({.jobs = {{"worker", 2}}, .function = "count", .own_hosts = true});
  const TaskId listener = {"worker", 0};
  const TaskId sender = {"worker", 1};
  EXPECT_EQ(runner.address(sender), "10.77.0.2:2222");
  runner.start();
  runner.wait_for_line(listener, "heard one", seconds(20));

  runner.partition({listener}, {sender}, Partition::kSilent);
  // The first number that is certainly lost, and some more. The log is read beside the network.
  runner.wait_for_line(sender, "sent ", seconds(20));
  const std::string log = runner.log(sender);
  const int lost = number_of(log.substr(0, log.rfind('\n'))) + 10;
  runner.wait_for_line(sender, "sent " + std::to_string(lost) + "$", seconds(20));
  runner.heal();
  runner.wait_for_line(listener, kSilence, seconds(20));

  runner.partition({listener}, {sender}, Partition::kLoud);
  runner.wait_for_line(sender, "cannot send", seconds(20));
  runner.heal();
  runner.kill(listener);
  runner.kill(sender);
  for (const TaskOutcome& outcome : runner.wait_all()) EXPECT_EQ(outcome.code, Code::kUnavailable);
}

TEST(OwnHostsTest, APausedTaskGoesOn) {
  MultiProcessRunner runner({.jobs = {{"worker", 2}}, .function = "count", .own_hosts = true});
  runner.start();
  runner.wait_for_line({"worker", 0}, "heard one", seconds(20));
  runner.pause({"worker", 0});
  runner.wait_for_line({"worker", 1}, "sent ", seconds(20));
  const std::string log = runner.log({"worker", 1});
  const int later = number_of(log.substr(0, log.rfind('\n'))) + 3;
  runner.wait_for_line({"worker", 1}, "sent " + std::to_string(later) + "$", seconds(20));
  const size_t before = runner.log({"worker", 0}).size();
  runner.resume({"worker", 0});
  while (runner.log({"worker", 0}).size() == before) std::this_thread::yield();
}

TEST(OwnHostsTest, OfSharedHostsThereIsNoPartition) {
  MultiProcessRunner runner({.jobs = {{"worker", 2}}, .function = "count"});
  EXPECT_THROW(runner.heal(), FailedPreconditionError);
}

}  // namespace
}  // namespace cohort::testing

int main(int argc, char** argv) {
  return cohort::testing::multi_process_main(argc, argv, {{"count", cohort::testing::count}},
                                             [](int count, char** arguments) {
                                               ::testing::InitGoogleTest(&count, arguments);
                                               return RUN_ALL_TESTS();
                                             });
}
