#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
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

}  // namespace
}  // namespace cohort::tools
