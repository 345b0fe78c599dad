#include "cohort/cluster/resolvers/default_cluster_resolver.h"

#include <gtest/gtest.h>

#include <string>

namespace cohort::distribute::cluster_resolver {
namespace {

std::string source(const Variables& variables) {
  return default_cluster_resolver({.variables = variables})->source();
}

TEST(DefaultClusterResolverTest, IsTheOneOfTheLauncher) {
  const Variables slurm = {{"SLURM_PROCID", "0"},
                           {"SLURM_STEP_ID", "0"},
                           {"SLURM_STEP_NUM_TASKS", "1"},
                           {"SLURM_STEP_NODELIST", "n"},
                           {"SLURM_GPUS_ON_NODE", "0"}};
  EXPECT_EQ(source(slurm), "Slurm");
  const Variables torchrun = {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}};
  EXPECT_EQ(source(torchrun), "torchrun");
  Variables mpi = {{"OMPI_COMM_WORLD_RANK", "0"},
                   {"OMPI_COMM_WORLD_SIZE", "2"},
                   {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
  EXPECT_EQ(source(mpi), "MPI");
  mpi.insert(slurm.begin(), slurm.end());
  EXPECT_EQ(source(mpi), "MPI");
  Variables all = mpi;
  all["TF_CONFIG"] = "{}";
  EXPECT_EQ(source(all), "TF_CONFIG");
}

TEST(DefaultClusterResolverTest, AloneWithoutALauncher) {
  EXPECT_TRUE(default_cluster_resolver({.variables = Variables{}})->cluster_spec().empty());
  // A batch script of Slurm without srun.
  EXPECT_EQ(source({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "3"}}), "TF_CONFIG");
}

TEST(DefaultClusterResolverTest, HandsTheRendezvousOn) {
  const auto resolver = default_cluster_resolver(
      {.rendezvous_address = "10.0.0.9:4000",
       .variables = Variables{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "10.0.0.9"}}});
  EXPECT_EQ(resolver->rendezvous()->address, "10.0.0.9:4000");
}

}  // namespace
}  // namespace cohort::distribute::cluster_resolver
