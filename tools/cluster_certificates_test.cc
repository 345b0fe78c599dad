#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "cohort/cluster/security/make_certificates.h"
#include "cohort/cluster/security/security.h"
#include "cohort/core/testing_errors.h"
#include "tools/cluster_commands.h"

namespace cohort::tools {
namespace {

using internal::security::credentials_in;
using internal::security::Security;

struct ClusterCertificates : testing::Test {
  ClusterCertificates() {
    std::string pattern = testing::TempDir() + "cohort_certificates_test.XXXXXX";
    root = ::mkdtemp(pattern.data());
  }
  ~ClusterCertificates() override { std::filesystem::remove_all(root); }
  std::string root;
};

TEST_F(ClusterCertificates, EachTaskGetsItsOwn) {
  std::ostringstream out;
  EXPECT_EQ(make_cluster_certificates({.cluster = "mnist",
                                       .directory = root + "/certs",
                                       .workers = 2,
                                       .ps = 1,
                                       .chief = true,
                                       .hosts = {"node1.example.com", "10.0.0.1", "::1"}},
                                      out),
            0);
  for (const TaskId& task :
       {TaskId{"chief", 0}, {"worker", 0}, {"worker", 1}, {"ps", 0}, {"operator", 0}}) {
    const auto security = Security::load(credentials_in(root + "/certs", task), task);
    EXPECT_EQ(security->identity().cluster, "mnist");
    EXPECT_THAT(out.str(), testing::HasSubstr(credentials_in(root + "/certs", task).key_file));
  }
  EXPECT_THAT(out.str(), testing::HasSubstr("New authority, 5 certificates for 30 days"));
}

TEST_F(ClusterCertificates, WrongRequestsWriteNothing) {
  std::ostringstream out;
  internal::expect_error<InvalidArgumentError>(
      [&] { make_cluster_certificates({.cluster = "a", .directory = root + "/c"}, out); },
      "how many workers");
  internal::expect_error<InvalidArgumentError>(
      [&] {
        make_cluster_certificates({.cluster = "a b", .directory = root + "/c", .workers = 1}, out);
      },
      "a cluster cannot be called 'a b'");
  EXPECT_FALSE(std::filesystem::exists(root + "/c"));
}

TEST_F(ClusterCertificates, DirectoriesThatOthersCanWriteAreNotTrusted) {
  std::ostringstream out;
  const auto refused = [&](const std::string& directory, const std::string& problem) {
    internal::expect_error<FailedPreconditionError>(
        [&] {
          make_cluster_certificates({.cluster = "a", .directory = directory, .workers = 1}, out);
        },
        problem);
  };
  using std::filesystem::perms;
  std::filesystem::create_directory(root + "/open");
  std::filesystem::permissions(root + "/open", perms::owner_all | perms::group_write);
  refused(root + "/open", "chmod go-w");
  std::filesystem::permissions(root + "/open", perms::owner_all | perms::group_exec);
  make_cluster_certificates({.cluster = "a", .directory = root + "/open", .workers = 1}, out);
  std::filesystem::create_symlink(root + "/open", root + "/link");
  refused(root + "/link", "is a link");
  refused(root + "/link/", "is a link");
  std::ofstream(root + "/file") << "no directory";
  refused(root + "/file", "is no directory");
  std::filesystem::permissions(root + "/open/ca.key", perms::group_read,
                               std::filesystem::perm_options::add);
  refused(root + "/open", "can be read or written by others");
  std::filesystem::rename(root + "/open/ca.key", root + "/ca.key");
  std::filesystem::create_symlink(root + "/ca.key", root + "/open/ca.key");
  refused(root + "/open", "is no file of its own");
}

TEST_F(ClusterCertificates, AnotherUsersAreNotTrusted) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  std::ostringstream out;
  const CertificatesOptions options{.cluster = "a", .directory = root + "/certs", .workers = 1};
  make_cluster_certificates(options, out);
  const auto refused = [&] {
    internal::expect_error<FailedPreconditionError>(
        [&] { make_cluster_certificates(options, out); }, "belongs to user 65534");
  };
  ASSERT_EQ(::chown((root + "/certs/ca.key").c_str(), 65534, 65534), 0);
  refused();
  ASSERT_EQ(::chown((root + "/certs/ca.key").c_str(), 0, 0), 0);
  ASSERT_EQ(::chown((root + "/certs").c_str(), 65534, 65534), 0);
  refused();
}

}  // namespace
}  // namespace cohort::tools
