#include "cohort/cluster/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"

namespace cohort::internal {
namespace {

TEST(AddressTest, TakesHostsAndPortsApart) {
  EXPECT_EQ(parse_address("10.0.0.1:2222"),
            (Address{.host = "10.0.0.1", .port = 2222, .path = ""}));
  EXPECT_EQ(parse_address("[::1]:65535"), (Address{.host = "::1", .port = 65535, .path = ""}));
  EXPECT_EQ(parse_address("[fe80::1%eth0.2]:1").host, "fe80::1%eth0.2");
  EXPECT_EQ(parse_address("worker-0.job.svc.cluster.local:8470").port, 8470);
  EXPECT_EQ(parse_address("my_service:80").host, "my_service");
  EXPECT_EQ(parse_address("host.:1").host, "host.");
  EXPECT_EQ(parse_address("3com.example:1").host, "3com.example");
  EXPECT_EQ(parse_address("unix:/run/w0.sock").path, "/run/w0.sock");
  EXPECT_EQ(parse_address("unix:///run/w0.sock").path, "/run/w0.sock");
  EXPECT_EQ(parse_address("127.0.0.1:0", {.any_port = true}).port, 0);
}

TEST(AddressTest, EachMistakeHasItsOwnLine) {
  const std::string long_name(254, 'a');
  const struct {
    std::string address;
    std::string problem;
  } kMistakes[] = {
      {"", "is empty"},
      {"host", "has no port"},
      {"10.0.0.1", "has no port"},
      {"[::1]", "has no port"},
      {"[::1]2222", "has no port"},
      {"host:", "has no port after ':'"},
      {":2222", "has no host"},
      {"host:0", "has the port '0'; ports are 1 to 65535"},
      {"host:70000", "has the port '70000'; ports are 1 to 65535"},
      {"host:99999999999999999999", "ports are 1 to 65535"},
      {"host:http", "has the port 'http', which is no number"},
      {"host:-1", "has the port '-1', which is no number"},
      {"host:+1", "has the port '+1', which is no number"},
      {"host:0080", "has a port that begins with 0"},
      {"::1:2222", "is an IPv6 address without brackets"},
      {"fe80::1", "is an IPv6 address without brackets"},
      {"a:b:1", "has more than one ':'"},
      {"[::1:2222", "has a '[' without ']'"},
      {"[::g]:2222", "has no IPv6 address between its brackets"},
      {"[10.0.0.1]:2222", "has no IPv6 address between its brackets"},
      {"[fe80::1%]:1", "has a wrong zone"},
      {"[fe80::1%eth0;x]:1", "has a wrong zone"},
      {"10.0.0.256:1", "ends in a number and is no IPv4 address"},
      {"10.0.1:1", "ends in a number and is no IPv4 address"},
      {"010.0.0.1:1", "ends in a number and is no IPv4 address"},
      {"0x7f000001:1", "ends in a number and is no IPv4 address"},
      {"127.0.0.1.:1", "ends in a number and is no IPv4 address"},
      {"grpc://host:1", "has a scheme"},
      {"host:1/path", "has a path"},
      {"host :1", "has a blank or a control character"},
      {" host:1", "has a blank or a control character"},
      {"host:1\n", "has a blank or a control character"},
      {std::string("ho\0st:1", 7), "has a NUL byte"},
      {"a..b:1", "has a host with an empty part"},
      {"-a:1", "begins or ends with '-'"},
      {"a-.b:1", "begins or ends with '-'"},
      {std::string(64, 'a') + ":1", "has a host with a part of more than 63 characters"},
      {long_name + ":1", "has a host of more than 253 characters"},
      {"user@host:1", "has a host with '@'"},
      {"w\xc3\xb6rker:1", "has a host with a letter that is not ASCII"},
      {"unix:run/w0", "must have an absolute path"},
      {"unix:", "must have an absolute path"},
      {"unix:/run/", "names a folder"},
      {"unix:/run/../w0", "has '.' or '..' in its path"},
      {"unix:/run/.", "has '.' or '..' in its path"},
      {"unix:/" + std::string(107, 'a'), "has a path of 108 bytes; a unix socket's may have 107"},
  };
  for (const auto& [address, problem] : kMistakes) {
    const std::string message =
        thrown<InvalidArgumentError>([&, &address = address] { parse_address(address); });
    EXPECT_THAT(message, ::testing::HasSubstr(problem)) << address;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    EXPECT_LT(message.size(), 300u) << message;
  }
}

TEST(AddressTest, IsWrittenAsItIsRead) {
  for (const std::string text :
       {"10.0.0.1:2222", "[::1]:2222", "[fe80::1%eth0]:2222", "Host:1", "unix:/run/w0.sock"}) {
    EXPECT_EQ(to_string(parse_address(text)), text);
  }
}

TEST(AddressTest, OneAddressHasOneCanonicalForm) {
  const auto same = [](const char* left, const char* right) {
    return canonical(parse_address(left)) == canonical(parse_address(right));
  };
  EXPECT_TRUE(same("[0:0:0:0:0:0:0:1]:1", "[::1]:1"));
  EXPECT_TRUE(same("[FE80::A%eth0]:1", "[fe80::a%eth0]:1"));
  EXPECT_FALSE(same("[fe80::a%eth0]:1", "[fe80::a%eth1]:1"));
  EXPECT_TRUE(same("Host.Example:1", "host.example.:1"));
  EXPECT_TRUE(same("unix:///run/a", "unix:/run/a"));
  EXPECT_TRUE(same("unix://////run//a", "unix:/run/a"));
  EXPECT_FALSE(same("host:1", "host:2"));
}

TEST(AddressTest, KnowsWhatOnlyThisHostReaches) {
  for (const char* text : {"127.0.0.1:1", "127.8.9.1:1", "[::1]:1", "[::ffff:127.0.0.1]:1",
                           "localhost:1", "LocalHost.:1", "unix:/run/a"}) {
    EXPECT_TRUE(is_loopback(parse_address(text))) << text;
  }
  for (const char* text : {"128.0.0.1:1", "0.0.0.0:1", "[::]:1", "[::2]:1", "localhost.example:1",
                           "127.example:1", "[::ffff:10.0.0.1]:1"}) {
    EXPECT_FALSE(is_loopback(parse_address(text))) << text;
  }
  EXPECT_TRUE(is_unspecified(parse_address("0.0.0.0:1")));
  EXPECT_TRUE(is_unspecified(parse_address("[::]:1")));
  EXPECT_FALSE(is_unspecified(parse_address("10.0.0.0:1")));
}

}  // namespace
}  // namespace cohort::internal
