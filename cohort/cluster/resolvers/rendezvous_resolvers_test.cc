// Resolvers of launchers that give ranks and no addresses: torchrun, mpirun.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "cohort/cluster/cluster_check.h"
#include "cohort/cluster/resolvers/mpi_cluster_resolver.h"
#include "cohort/cluster/resolvers/torchrun_cluster_resolver.h"
#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"

namespace cohort::distribute::cluster_resolver {
namespace {

using ::testing::HasSubstr;

const Variables kTorchrun = {{"RANK", "2"},
                             {"WORLD_SIZE", "3"},
                             {"LOCAL_RANK", "0"},
                             {"MASTER_ADDR", "10.0.0.1"},
                             {"MASTER_PORT", "29500"}};

Variables changed(Variables variables, const std::string& name, const std::string& value) {
  variables[name] = value;
  return variables;
}

std::string address(const Variables& variables, std::optional<int> port = std::nullopt) {
  return TorchrunClusterResolver({.rendezvous_port = port, .variables = variables})
      .rendezvous()
      ->address;
}

TEST(TorchrunClusterResolverTest, KnowsRankSizeAndWhereToMeet) {
  const TorchrunClusterResolver resolver({.variables = kTorchrun});
  EXPECT_EQ(resolver.rendezvous()->address, "10.0.0.1:29501");
  EXPECT_EQ(resolver.rendezvous()->rank, 2);
  EXPECT_EQ(resolver.rendezvous()->size, 3);
  EXPECT_EQ(resolver.task_type(), "worker");
  EXPECT_EQ(resolver.task_id(), 2);
  EXPECT_TRUE(resolver.cluster_spec().empty());
  EXPECT_EQ(resolver.master(), "grpc://10.0.0.1:29501");
  EXPECT_EQ(internal::check_cluster(resolver).self, (TaskId{"worker", 2}));
}

TEST(TorchrunClusterResolverTest, NeverMeetsAtTorchrunsOwnPort) {
  EXPECT_EQ(address(changed(kTorchrun, "MASTER_PORT", "65535")), "10.0.0.1:65534");
  EXPECT_EQ(address(changed(kTorchrun, "COHORT_RENDEZVOUS_PORT", "4000")), "10.0.0.1:4000");
  EXPECT_EQ(address(changed(kTorchrun, "COHORT_RENDEZVOUS_PORT", "4000"), 5000), "10.0.0.1:5000");
  EXPECT_EQ(address(changed(kTorchrun, "MASTER_ADDR", "fe80::1")), "[fe80::1]:29501");
  Variables no_port = kTorchrun;
  no_port.erase("MASTER_PORT");
  EXPECT_EQ(address(no_port), "10.0.0.1:29501");
  EXPECT_THAT(thrown<InvalidArgumentError>([] { address(kTorchrun, 29500); }),
              HasSubstr("is MASTER_PORT, where torchrun's own agent listens"));
}

TEST(TorchrunClusterResolverTest, SaysWhatIsMissingOrWrong) {
  EXPECT_EQ(thrown<FailedPreconditionError>([] { address(Variables{}); }),
            "RANK is not set in the environment; was this program started by torchrun?");
  EXPECT_THAT(thrown<InvalidArgumentError>([] { address(changed(kTorchrun, "RANK", "3")); }),
              HasSubstr("RANK is 3, and WORLD_SIZE 3"));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { address(changed(kTorchrun, "WORLD_SIZE", "x")); }),
              HasSubstr("WORLD_SIZE: must be a whole number of at least 1, is 'x'"));
  EXPECT_THAT(
      thrown<InvalidArgumentError>([] { address(changed(kTorchrun, "MASTER_ADDR", "a/b")); }),
      HasSubstr("'a/b:29501' has a path"));
  EXPECT_THROW(address(kTorchrun, 70000), InvalidArgumentError);
  EXPECT_THROW(address(kTorchrun, 0), InvalidArgumentError);
}

const Variables kMpirun = {{"OMPI_COMM_WORLD_RANK", "1"},
                           {"OMPI_COMM_WORLD_SIZE", "3"},
                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"},
                           {"PMIX_NAMESPACE", "2343829505"},
                           {"PMIX_RANK", "1"}};

Rendezvous meeting(const Variables& variables, const std::string& option = "") {
  return *MpiClusterResolver({.rendezvous_address = option, .variables = variables}).rendezvous();
}

TEST(MpiClusterResolverTest, TasksOfOneHostMeetAtAPortOfTheirRun) {
  const Rendezvous first = meeting(kMpirun);
  EXPECT_THAT(first.address, ::testing::MatchesRegex("127\\.0\\.0\\.1:2[0-9][0-9][0-9][0-9]"));
  EXPECT_EQ(first.rank, 1);
  EXPECT_EQ(first.size, 3);
  EXPECT_EQ(meeting(changed(kMpirun, "OMPI_COMM_WORLD_RANK", "2")).address, first.address);
  EXPECT_NE(meeting(changed(kMpirun, "PMIX_NAMESPACE", "99")).address, first.address);
}

TEST(MpiClusterResolverTest, SeveralHostsMustBeToldWhereToMeet) {
  const Variables two_hosts = changed(kMpirun, "OMPI_COMM_WORLD_LOCAL_SIZE", "2");
  EXPECT_THAT(thrown<FailedPreconditionError>([&] { meeting(two_hosts); }),
              HasSubstr("set COHORT_RENDEZVOUS=host:port in the environment of all tasks"));
  EXPECT_EQ(meeting(changed(two_hosts, "COHORT_RENDEZVOUS", "10.0.0.1:29600")).address,
            "10.0.0.1:29600");
  EXPECT_EQ(meeting(two_hosts, "a:1").address, "a:1");
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { meeting(two_hosts, "a"); }),
              HasSubstr("MPI: rendezvous address: 'a' has no port"));
  const MpiClusterResolver resolver({.rendezvous_address = "a:1", .variables = two_hosts});
  EXPECT_EQ(resolver.task_id(), 1);
  EXPECT_EQ(resolver.master(), "grpc://a:1");
}

TEST(MpiClusterResolverTest, KnowsOtherLaunchersOfMpi) {
  const Variables hydra = {{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "2"}};
  EXPECT_EQ(meeting(hydra).size, 2);
  const Variables pmix = {{"PMIX_RANK", "3"}, {"SLURM_STEP_NUM_TASKS", "4"}};
  EXPECT_EQ(meeting(pmix, "a:1").rank, 3);
  EXPECT_EQ(
      thrown<FailedPreconditionError>([] { meeting({}); }),
      "OMPI_COMM_WORLD_RANK is not set in the environment; was this program started by mpirun?");
  EXPECT_THAT(
      thrown<InvalidArgumentError>([] { meeting(changed(kMpirun, "OMPI_COMM_WORLD_RANK", "3")); }),
      HasSubstr("OMPI_COMM_WORLD_RANK is 3, and OMPI_COMM_WORLD_SIZE 3"));
}

}  // namespace
}  // namespace cohort::distribute::cluster_resolver
