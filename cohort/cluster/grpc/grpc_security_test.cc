// Who is refused, and that others notice nothing of it.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <random>
#include <sstream>

#include "cohort/cluster/grpc/byte_buffers.h"
#include "cohort/cluster/grpc/testing_services.h"
#include "cohort/cluster/security/make_certificates.h"
#include "cohort/cluster/security/signer.h"
#include "cohort/core/host/unique_fd.h"
#include "cohort/core/observe/monitoring.h"
#include "cohort/core/testing_errors.h"

namespace cohort::internal::rpc {
namespace {

using security::make_certificates;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr CallOptions kCallTime{.timeout = seconds(20)};

// A directory that goes away with the test.
struct Directory {
  Directory() {
    std::string pattern = ::testing::TempDir() + "cohort_security_test.XXXXXX";
    path = ::mkdtemp(pattern.data());
  }
  ~Directory() { std::filesystem::remove_all(path); }
  std::string path;
};

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return std::move(text).str();
}

struct GrpcSecurity : ::testing::Test {
  static void SetUpTestSuite() {
    directory = new Directory;
    make_certificates({.cluster = "test",
                       .tasks = {{"worker", 0}, {"worker", 1}, {"ps", 0}, {"ps", 1}, {"chief", 0}},
                       .directory = certificates()});
    make_certificates(
        {.cluster = "test", .tasks = {{"worker", 0}}, .directory = directory->path + "/other"});
  }
  static void TearDownTestSuite() { delete directory; }

  static std::string certificates() { return directory->path + "/certs"; }
  static distribute::Credentials credentials(const TaskId& task) {
    return security::credentials_in(certificates(), task);
  }

  std::shared_ptr<Channel> channel(const TaskId& self) const {
    return server.channel(self, credentials(self));
  }
  // The server's other work goes on.
  void expect_undisturbed() {
    EXPECT_EQ(other->call("echo/echo", {.control = "on"}, kCallTime).control, "on");
  }
  // A call as anybody may write it, with gRPC's own parts.
  grpc::Status raw_call(const std::shared_ptr<grpc::ChannelCredentials>& credentials) const {
    grpc::GenericStub stub(grpc::CreateChannel(server.server->address(), credentials));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + seconds(10));
    const grpc::Slice slice("\0\0\0\0", 4);
    grpc::ByteBuffer request(&slice, 1);
    grpc::ByteBuffer reply;
    std::promise<grpc::Status> status;
    stub.UnaryCall(&context, "/echo/echo", {}, &request, &reply,
                   [&](grpc::Status got) { status.set_value(std::move(got)); });
    return status.get_future().get();
  }

  static inline Directory* directory = nullptr;
  const TransportSettings settings{.keepalive_time = milliseconds(1000),
                                   .keepalive_timeout = milliseconds(1000),
                                   .handshake_timeout = milliseconds(500)};
  TestServer server{credentials({"ps", 0}), settings};
  const std::shared_ptr<Channel> other = channel({"worker", 1});
};

TEST_F(GrpcSecurity, ACertificateSaysWhoCalls) {
  EXPECT_EQ(channel({"worker", 0})->call("echo/who", {}, kCallTime).control,
            "/job:worker/task:0 worker 42");
  EXPECT_EQ(channel({"operator", 0})->call("echo/who", {}, kCallTime).control,
            "/job:operator/task:0 operator 42");
  EXPECT_EQ(channel({"chief", 0})->call("echo/change", {}, kCallTime).control, "changed");
}

TEST_F(GrpcSecurity, NobodySpeaksForAnotherTask) {
  const auto liar = server.channel({"ps", 1}, credentials({"worker", 0}));
  expect_error<PermissionDeniedError>([&] { liar->call("echo/who", {}, kCallTime); },
                                      "but its certificate is /job:worker/task:0's");
  expect_undisturbed();
}

TEST_F(GrpcSecurity, AServerMustBeTheTaskThatWasMeant) {
  const auto lost = server.channel({"worker", 0}, credentials({"worker", 0}), {"ps", 1});
  expect_error<UnauthenticatedError>([&] { lost->call("echo/who", {}, kCallTime); },
                                     "is /job:ps/task:0, not /job:ps/task:1");
}

TEST_F(GrpcSecurity, AnotherAuthorityCountsForNothing) {
  const auto stranger = server.channel(
      {"worker", 0}, security::credentials_in(directory->path + "/other", {"worker", 0}));
  expect_error<UnavailableError>([&] { stranger->call("echo/who", {}, kCallTime); },
                                 "cannot reach");
  // The same towards the server: one that the client's authority has signed, but not the server's.
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = text_of(certificates() + "/ca.pem");
  options.pem_cert_chain = text_of(directory->path + "/other/worker-0.pem");
  options.pem_private_key = text_of(directory->path + "/other/worker-0.key");
  EXPECT_FALSE(raw_call(grpc::SslCredentials(options)).ok());
  expect_undisturbed();
}

TEST_F(GrpcSecurity, NoCertificateNoCall) {
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = text_of(certificates() + "/ca.pem");
  EXPECT_FALSE(raw_call(grpc::SslCredentials(options)).ok());
  expect_undisturbed();
}

TEST_F(GrpcSecurity, ExpiredCertificatesAreRefusedOnBothSides) {
  const auto signer = security::Signer::from_pem(text_of(certificates() + "/ca.pem"),
                                                 text_of(certificates() + "/ca.key"), "test", "ca");
  const auto expired = signer.sign({.uri = "cohort://test/worker/0",
                                    .common_name = "late",
                                    .hosts = {},
                                    .lifetime = seconds(-10),
                                    .starts_after = seconds(-100)});
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = text_of(certificates() + "/ca.pem");
  options.pem_cert_chain = expired.certificate_pem;
  options.pem_private_key = expired.key_pem;
  EXPECT_FALSE(raw_call(grpc::SslCredentials(options)).ok());
  expect_undisturbed();

  const Directory late;
  distribute::Credentials files{.certificate_file = late.path + "/c.pem",
                                .key_file = late.path + "/c.key",
                                .ca_file = certificates() + "/ca.pem"};
  std::ofstream(files.certificate_file) << expired.certificate_pem;
  std::ofstream(files.key_file) << expired.key_pem;
  std::filesystem::permissions(files.key_file, std::filesystem::perms::owner_read);
  expect_error<FailedPreconditionError>([&] { security::Security::load(files, std::nullopt); },
                                        "has expired");
}

TEST_F(GrpcSecurity, PlaintextIsRefused) {
  const auto plain = server.channel({"worker", 0});
  expect_error<UnavailableError>([&] { plain->call("echo/who", {}, kCallTime); }, "cannot reach");
  expect_undisturbed();
}

UniqueFd raw_connection(const std::string& address) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  return socket;
}

// Whether the server ends the connection within 20 s, whatever it says before.
bool ends(const UniqueFd& socket) {
  char bytes[4096];
  while (true) {
    pollfd watched{socket.get(), POLLIN, 0};
    if (::poll(&watched, 1, 20'000) != 1) return false;
    if (::recv(socket.get(), bytes, sizeof bytes, 0) <= 0) return true;
  }
}

TEST_F(GrpcSecurity, RandomBytesEndTheirConnectionOnly) {
  std::mt19937 random(7);
  for (int i = 0; i < 20; ++i) {
    const UniqueFd socket = raw_connection(server.server->address());
    std::string bytes(1 + random() % 2000, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    EXPECT_TRUE(ends(socket));
  }
  expect_undisturbed();
}

TEST_F(GrpcSecurity, FailedHandshakesAreCounted) {
  const auto count = [] { return monitoring::value("refused_connections", {"handshake"}); };
  const int64_t before = count();
  for (int i = 0; i < 3; ++i) {
    const UniqueFd socket = raw_connection(server.server->address());
    constexpr std::string_view kRequest = "GET /metrics HTTP/1.1\r\n\r\n";
    ::send(socket.get(), kRequest.data(), kRequest.size(), MSG_NOSIGNAL);
    EXPECT_TRUE(ends(socket));
  }
  EXPECT_EQ(count(), before + 3);
}

TEST_F(GrpcSecurity, WhoSaysNothingIsSentAway) {
  const UniqueFd silent = raw_connection(server.server->address());
  const UniqueFd slow = raw_connection(server.server->address());
  ::send(slow.get(), "\x16", 1, MSG_NOSIGNAL);  // the first byte of a handshake
  EXPECT_TRUE(ends(silent));
  EXPECT_TRUE(ends(slow));
  expect_undisturbed();
}

TEST(GrpcSecurityPlain, WhoSaysNothingIsSentAway) {
  TestServer server({}, {.handshake_timeout = milliseconds(300)});
  EXPECT_TRUE(ends(raw_connection(server.server->address())));
  const UniqueFd slow = raw_connection(server.server->address());
  ::send(slow.get(), "PRI * HTTP/2.0", 14, MSG_NOSIGNAL);
  EXPECT_TRUE(ends(slow));
}

TEST_F(GrpcSecurity, EveryMethodRefusesEveryWrongRole) {
  int refused = 0;
  for (const MethodEntry& entry : server.dispatcher.table()) {
    if (entry.name == "echo/keep") continue;  // does not answer
    for (const TaskId& task : {TaskId{"worker", 0}, {"ps", 1}, {"chief", 0}, {"operator", 0}}) {
      const bool allowed = entry.spec.callers.contains(*testing_role(task));
      Code code = Code::kOk;
      try {
        channel(task)->call(entry.name, {}, kCallTime);
      } catch (const Error& error) {
        code = error.code();
      }
      EXPECT_EQ(code == Code::kPermissionDenied, !allowed) << entry.name << " by " << task;
      refused += !allowed;
    }
  }
  EXPECT_EQ(refused, 3);
  expect_undisturbed();
}

TEST_F(GrpcSecurity, FilesOfOthersAreRefused) {
  expect_error<FailedPreconditionError>(
      [] {
        security::Security::load(credentials({"worker", 0}), TaskId{"worker", 1});
      },
      "is /job:worker/task:0's, but this is /job:worker/task:1");
  distribute::Credentials mixed = credentials({"worker", 0});
  mixed.key_file = credentials({"worker", 1}).key_file;
  expect_error<FailedPreconditionError>([&] { security::Security::load(mixed, std::nullopt); },
                                        "does not belong to the key");
  mixed = credentials({"worker", 0});
  mixed.ca_file = directory->path + "/other/ca.pem";
  expect_error<FailedPreconditionError>([&] { security::Security::load(mixed, std::nullopt); },
                                        "is refused");
  mixed.ca_file = "";
  expect_error<InvalidArgumentError>([&] { security::Security::load(mixed, std::nullopt); },
                                     "belong together");
  mixed = credentials({"worker", 0});
  mixed.ca_file = directory->path + "/none.pem";
  expect_error<NotFoundError>([&] { security::Security::load(mixed, std::nullopt); }, "none.pem");
}

// A directory as a pod has it: the task's own files and the authority's certificate, nothing else.
TEST_F(GrpcSecurity, ATaskFindsItsOwnFilesInADirectory) {
  const TaskId self{"worker", 1};
  const std::string own = directory->path + "/own";
  std::filesystem::create_directory(own);
  for (const char* name : {"worker-1.pem", "worker-1.key", "ca.pem"}) {
    std::filesystem::copy(certificates() + "/" + name, own);
  }
  const auto found = security::Security::load({.directory = own}, self);
  EXPECT_EQ(found->identity().task, self);
  EXPECT_EQ(found->credentials().key_file, own + "/worker-1.key");
  expect_error<NotFoundError>(
      [&] {
        security::Security::load({.directory = own}, TaskId{"worker", 0});
      },
      "own/worker-0.key");
  EXPECT_EQ(security::Security::load({.directory = certificates()}, std::nullopt)->identity().task,
            (TaskId{"operator", 0}));
  distribute::Credentials both = credentials(self);
  both.directory = own;
  expect_error<InvalidArgumentError>([&] { security::Security::load(both, self); },
                                     "or the directory");
  expect_error<InvalidArgumentError>(
      [&] { security::Security::load({.directory = own, .insecure = true}, self); },
      "exclude each other");
}

TEST_F(GrpcSecurity, TheEnvironmentNamesADirectoryOrTheFilesOfATask) {
  ::setenv("COHORT_CERTIFICATES", "/certs", 1);
  EXPECT_EQ(distribute::Credentials::from_environment().directory, "/certs");
  EXPECT_FALSE(distribute::Credentials::from_environment().empty());
  ::setenv("COHORT_KEY_FILE", "/own/key", 1);
  EXPECT_EQ(distribute::Credentials::from_environment().directory, "");
  EXPECT_EQ(distribute::Credentials::from_environment().key_file, "/own/key");
  ::unsetenv("COHORT_KEY_FILE");
  ::unsetenv("COHORT_CERTIFICATES");
  EXPECT_TRUE(distribute::Credentials::from_environment().empty());
}

TEST_F(GrpcSecurity, KeysAreTheirOwnersAlone) {
  for (const auto& file : std::filesystem::directory_iterator(certificates())) {
    EXPECT_EQ(file.status().permissions(),
              std::filesystem::perms::owner_read | std::filesystem::perms::owner_write)
        << file.path();
  }
}

TEST_F(GrpcSecurity, RenewedCertificatesComeFromTheSameAuthority) {
  const Directory renewed;
  const security::CertificateRequest request{
      .cluster = "test", .tasks = {{"worker", 0}}, .directory = renewed.path};
  EXPECT_TRUE(make_certificates(request).new_authority);
  const std::string authority = text_of(renewed.path + "/ca.pem");
  const std::string certificate = text_of(renewed.path + "/worker-0.pem");
  EXPECT_FALSE(make_certificates(request).new_authority);
  EXPECT_EQ(text_of(renewed.path + "/ca.pem"), authority);
  EXPECT_NE(text_of(renewed.path + "/worker-0.pem"), certificate);
  expect_error<FailedPreconditionError>(
      [&] {
        make_certificates({.cluster = "b", .tasks = {{"worker", 0}}, .directory = renewed.path});
      },
      "not of cluster 'b'");
  expect_error<InvalidArgumentError>(
      [&] {
        make_certificates({.cluster = "a/b", .tasks = {{"worker", 0}}, .directory = renewed.path});
      },
      "a cluster cannot be called 'a/b'");
}

// A secret file.
std::string token_file(const Directory& directory, const std::string& name,
                       const std::string& token) {
  const std::string path = directory.path + "/" + name;
  std::ofstream(path) << token << '\n';
  std::filesystem::permissions(path, std::filesystem::perms::owner_read);
  return path;
}

TEST(GrpcSecurityToken, OnlyTheRightOneCounts) {
  const Directory directory;
  const distribute::Credentials right{.token_file =
                                          token_file(directory, "right", std::string(64, 'a'))};
  const distribute::Credentials wrong{
      .token_file = token_file(directory, "wrong", std::string(63, 'a') + "b")};
  TestServer server(right);
  EXPECT_EQ(server.channel({"worker", 0}, right)->call("echo/who", {}, kCallTime).control,
            "/job:worker/task:0 worker 42");
  try {
    server.channel({"worker", 0}, wrong)->call("echo/who", {}, kCallTime);
    FAIL() << "no error";
  } catch (const UnauthenticatedError& error) {
    EXPECT_THAT(error.what(), HasSubstr("gives a wrong token"));
    EXPECT_THAT(error.what(), ::testing::Not(HasSubstr("aaaa")));
  }
  expect_error<UnauthenticatedError>(
      [&] {
        server.channel({"worker", 0})->call("echo/who", {}, kCallTime);
      },
      "gives no token");
}

TEST(GrpcSecurityToken, TheFileMustBeASecret) {
  const Directory directory;
  const auto load = [&](const std::string& path) {
    security::Security::load({.token_file = path}, std::nullopt);
  };
  const std::string open = token_file(directory, "open", std::string(64, 'a'));
  std::filesystem::permissions(
      open, std::filesystem::perms::owner_read | std::filesystem::perms::group_read);
  expect_error<FailedPreconditionError>([&] { load(open); }, "has mode 0440");
  expect_error<FailedPreconditionError>([&] { load(token_file(directory, "short", "abc")); },
                                        "64 hexadecimal digits");
  expect_error<NotFoundError>([&] { load(directory.path + "/none"); }, "none");
  const auto token = security::Security::load(
      {.token_file = token_file(directory, "good", std::string(64, 'f'))}, std::nullopt);
  expect_error<FailedPreconditionError>([&] { token->check_address("10.0.0.1:80", false); },
                                        "token_file is for loopback");
}

// One stream that anybody may write: what it is answered with.
grpc::Status raw_stream(const std::string& address, const std::string& first) {
  grpc::GenericStub stub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + seconds(10));
  const grpc::Slice slice(first);
  grpc::ByteBuffer request(&slice, 1);
  grpc::ByteBuffer reply;
  std::promise<grpc::Status> status;
  stub.UnaryCall(&context, "/echo/echo", {}, &request, &reply,
                 [&](grpc::Status got) { status.set_value(std::move(got)); });
  return status.get_future().get();
}

TEST(GrpcSecurityPlain, MessagesAboveTheLimitEndTheirCallOnly) {
  TestServer server;
  const auto other = server.channel();
  other->call("echo/echo", {}, kCallTime);
  const grpc::Status status =
      raw_stream(server.server->address(), std::string(kMaxPieceBytes + 1, 'x'));
  EXPECT_EQ(status.error_code(), grpc::RESOURCE_EXHAUSTED) << status.error_message();
  // A stream that ends in the middle is answered with an error as any other call is.
  EXPECT_TRUE(raw_stream(server.server->address(), std::string("\x10\0\0\0abc", 7)).ok());
  EXPECT_EQ(other->call("echo/echo", {.control = "on"}, kCallTime).control, "on");
}

// By another authority, so that it shows which files a new connection uses.
TEST_F(GrpcSecurity, ATaskThatRunsTakesRenewedCertificates) {
  const Directory now, before;
  const auto make = [&] {
    make_certificates(
        {.cluster = "test", .tasks = {{"worker", 0}, {"ps", 0}}, .directory = now.path});
  };
  make();
  std::filesystem::copy(now.path, before.path, std::filesystem::copy_options::recursive);
  const TestServer running(security::credentials_in(now.path, {"ps", 0}));
  const TaskId worker{"worker", 0};
  const auto old = running.channel(worker, security::credentials_in(now.path, worker));
  EXPECT_EQ(old->call("echo/echo", {.control = "1"}, kCallTime).control, "1");
  for (const char* file : {"ca.pem", "ca.key"}) std::filesystem::remove(now.path + "/" + file);
  make();
  // Waits until the server has taken them.
  const auto renewed = running.channel(worker, security::credentials_in(now.path, worker));
  CallOptions patient = kCallTime;
  patient.wait_for_peer = true;
  EXPECT_EQ(renewed->call("echo/echo", {.control = "2"}, patient).control, "2");
  EXPECT_EQ(old->call("echo/echo", {.control = "3"}, kCallTime).control, "3");
  const auto outdated = running.channel(worker, security::credentials_in(before.path, worker));
  EXPECT_THROW(outdated->call("echo/echo", {}, kCallTime), UnavailableError);
}

TEST_F(GrpcSecurity, OverIPv6) {
  const TestServer six(credentials({"ps", 0}), settings, {.host = "::1"});
  EXPECT_THAT(six.server->address(), ::testing::StartsWith("[::1]:"));
  const auto channel = six.channel({"worker", 0}, credentials({"worker", 0}));
  EXPECT_EQ(channel->call("echo/who", {}, kCallTime).control, "/job:worker/task:0 worker 42");
  const TestServer plain({}, settings, {.host = "::1"});  // loopback: needs no credentials
  EXPECT_EQ(plain.channel()->call("echo/echo", {.control = "x"}, kCallTime).control, "x");
}

}  // namespace
}  // namespace cohort::internal::rpc
