#include "cohort/keras/datasets/download.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdlib>
#include <iterator>
#include <thread>

#include "cohort/core/error.h"
#include "cohort/core/testing_file_size_limit.h"
#include "cohort/keras/datasets/testing_files.h"

namespace cohort::internal {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr const char* kContent = "the content";

// Answers one HTTP request with the given bytes, then closes the connection.
class OneShotServer {
 public:
  explicit OneShotServer(std::string answer)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), answer_(std::move(answer)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* raw = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(socket_, raw, size), 0);
    EXPECT_EQ(::listen(socket_, 1), 0);
    EXPECT_EQ(::getsockname(socket_, raw, &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~OneShotServer() {
    ::shutdown(socket_, SHUT_RDWR);
    thread_.join();
    ::close(socket_);
  }

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/file"; }

 private:
  void serve() {
    const int connection = ::accept(socket_, nullptr, nullptr);
    if (connection < 0) return;
    std::string request;
    std::array<char, 1024> block;
    while (request.find("\r\n\r\n") == std::string::npos) {
      const ssize_t count = ::read(connection, block.data(), block.size());
      if (count <= 0) break;
      request.append(block.data(), static_cast<size_t>(count));
    }
    EXPECT_EQ(::send(connection, answer_.data(), answer_.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(answer_.size()));
    if (!answer_.empty()) ::shutdown(connection, SHUT_WR);  // else stay silent
    // Until the client has closed, so that it gets all of the answer.
    while (::read(connection, block.data(), block.size()) > 0) {
    }
    ::close(connection);
  }

  const int socket_;
  const std::string answer_;
  int port_ = 0;
  std::thread thread_;
};

class DownloadTest : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("no_proxy", "127.0.0.1", 1); }
  DownloadOptions options(const std::string& url) const {
    return {.url = url, .target = folder_ / "cache/file", .md5 = md5_of(kContent)};
  }
  // The target, and anything beside it.
  int num_files() const {
    int count = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path())) {
      count += entry.is_regular_file();
    }
    return count;
  }

  const TemporaryFolder folder_;
};

TEST_F(DownloadTest, Md5OfKnownBytes) {
  EXPECT_EQ(md5_of(""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(md5_of("abc"), "900150983cd24fb0d6963f7d28e17f72");
}

TEST_F(DownloadTest, OverHttp) {
  const OneShotServer server("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nthe content");
  download(options(server.url()));
  std::ifstream file(folder_ / "cache/file");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), kContent);
  EXPECT_EQ(num_files(), 1);
}

TEST_F(DownloadTest, APartialFileIsDataLoss) {
  const OneShotServer server("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nthe con");
  EXPECT_THAT([&] { download(options(server.url())); },
              ThrowsMessage<DataLossError>(
                  AllOf(HasSubstr(server.url()), HasSubstr("after 7 bytes: partial"))));
  EXPECT_EQ(num_files(), 0);
}

TEST_F(DownloadTest, AWrongChecksumIsDataLoss) {
  const OneShotServer server("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nthe c0ntent");
  EXPECT_THAT([&] { download(options(server.url())); },
              ThrowsMessage<DataLossError>(AllOf(HasSubstr("instead of " + md5_of(kContent)),
                                                 HasSubstr(md5_of("the c0ntent")))));
  EXPECT_EQ(num_files(), 0);
}

TEST_F(DownloadTest, ATooLargeFileIsDataLoss) {
  const OneShotServer server("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nthe content");
  auto small = options(server.url());
  small.max_bytes = 10;
  EXPECT_THAT([&] { download(small); },
              ThrowsMessage<DataLossError>(HasSubstr("larger than 10 bytes")));
  EXPECT_EQ(num_files(), 0);
}

TEST_F(DownloadTest, AFullDiskIsResourceExhausted) {
  const OneShotServer server("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nthe content");
  EXPECT_THAT(
      [&] {
        const FileSizeLimit full(7);
        download(options(server.url()));
      },
      ThrowsMessage<ResourceExhaustedError>(
          HasSubstr("cannot write beside " + folder_ / "cache/file")));
  EXPECT_EQ(num_files(), 0);
}

TEST_F(DownloadTest, AnHttpErrorIsUnavailable) {
  const OneShotServer server("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
  EXPECT_THAT([&] { download(options(server.url())); },
              ThrowsMessage<UnavailableError>(HasSubstr("404")));
  EXPECT_EQ(num_files(), 0);
}

TEST_F(DownloadTest, ARefusedConnectionIsUnavailable) {
  // The discard service's port, where nobody listens.
  EXPECT_THROW(download(options("http://127.0.0.1:9/file")), UnavailableError);
  EXPECT_EQ(num_files(), 0);
}

TEST_F(DownloadTest, ASilentServerIsUnavailableWhenTheTimeIsUp) {
  const OneShotServer server("");
  auto impatient = options(server.url());
  impatient.timeout = std::chrono::milliseconds(100);
  EXPECT_THAT([&] { download(impatient); },
              ThrowsMessage<UnavailableError>(HasSubstr("timed out")));
  EXPECT_EQ(num_files(), 0);
}

TEST_F(DownloadTest, OnlyFileAndHttpUrls) {
  EXPECT_THROW(download(options("ftp://127.0.0.1/file")), UnavailableError);
}

TEST_F(DownloadTest, AFolderThatCannotBeMadeIsPermissionDenied) {
  folder_.write("cache", "a file where the folder should be");
  EXPECT_THAT([&] { download(options("file:///dev/null")); },
              ThrowsMessage<PermissionDeniedError>(HasSubstr(folder_ / "cache/file")));
}

}  // namespace
}  // namespace cohort::internal
