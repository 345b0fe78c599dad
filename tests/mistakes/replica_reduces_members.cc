// Several values in one all-reduce.
// EXPECT: compiles
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  strategy.run(
      [](ReplicaContext& replica, const Tensor& x, const Tensor& y) {
        auto [sum, count] = replica.all_reduce(ReduceOp::SUM, std::pair(x.sum(), 1.0));
        std::vector<Tensor> both =
            replica.all_reduce(ReduceOp::MEAN, std::vector<Tensor>{sum, count});
        auto [rows] = replica.all_gather(std::tuple(y), 0);
        return both[0] + rows.sum();
      },
      batch);
}
