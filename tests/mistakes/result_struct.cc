// A struct of results.
// EXPECT: compiles
#include "given.h"

struct Result {
  Tensor loss;
  double accuracy = 0;
};

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  auto results = strategy.run(
      [](const Tensor& x, const Tensor& y) {
        return Result{x.sum(), 0.5};
      },
      batch);
  Result total = strategy.reduce(ReduceOp::SUM, results);
  PerReplica<Tensor> losses = results[&Result::loss];
  std::cout << results << total.loss;
}
