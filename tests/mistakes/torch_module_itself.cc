// Each replica needs a module of its own.
// EXPECT: TorchModel takes a function that makes a module
#include "given.h"

// As torch::nn::Module, without its headers.
struct Net {
  std::vector<std::pair<std::string, Tensor>> named_parameters() const { return {}; }
  Tensor forward(const Tensor& x) { return x; }
};

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  Net net;
  tf::keras::TorchModel model(net);  // here
}
