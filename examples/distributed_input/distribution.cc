// A dataset of global batches, split over the replicas.
#include "common/print.h"
#include "sections.h"

namespace distributed_input {

using namespace examples;

using cohort::data::Dataset;

namespace {

std::string split(const Dataset& dataset, int num_replicas) {
  const auto strategy = replicas(num_replicas);
  return steps(strategy.experimental_distribute_dataset(dataset));
}

}  // namespace

void distribute_a_dataset() {
  // The last global batch is split between the replicas too.
  line("range(6).batch(4), 2 replicas", split(Dataset::range(6).batch(4), 2));
  // Where there are fewer rows than replicas, the last ones get batches of no rows.
  line("range(4).batch(4), 5 replicas", split(Dataset::range(4).batch(4), 5));
  line("range(8).batch(4), 3 replicas", split(Dataset::range(8).batch(4), 3));
}

}  // namespace distributed_input
