// The smallest whole program: one step on two replicas, and the sum of what they return.
#include <cohort/cohort.h>

#include <iostream>

namespace tf = cohort;

int main() {
  tf::config::set_logical_device_configuration("CPU", 2);
  tf::distribute::MirroredStrategy strategy;

  auto values = strategy.run([](tf::distribute::ReplicaContext& replica) {
    return tf::Structure(replica.replica_id_in_sync_group() + 1);
  });
  tf::Tensor sum = strategy.reduce(tf::distribute::ReduceOp::SUM, values);

  std::cout << "cohort " << tf::kVersion << ": " << strategy.num_replicas_in_sync()
            << " replicas, sum " << sum.item<int64_t>() << '\n';
}
