// Keras's layers are handles; a class of one's own is an object, which handles share.
// EXPECT: give std::make_shared<YourLayer>(...)
#include "given.h"

class Scale : public tf::keras::layers::Layer {
  Tensor call(const Tensor& x, const tf::keras::CallOptions&) override { return 2 * x; }
};

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  tf::keras::Sequential model({tf::keras::layers::Dense(4), Scale()});  // here
}
