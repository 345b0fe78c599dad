#include "restored.h"

#include "common/trainer.h"

namespace custom_training {

namespace tf = cohort;

double restored_accuracy(const std::string& checkpoint_dir, const tf::data::Dataset& batches) {
  const tf::keras::Sequential model = examples::create_model();
  const tf::keras::optimizers::Adam optimizer;
  const tf::keras::metrics::SparseCategoricalAccuracy accuracy({.name = "eval_accuracy"});

  const tf::train::Checkpoint checkpoint({{"optimizer", optimizer}, {"model", model}});
  const auto status = checkpoint.restore(tf::train::latest_checkpoint(checkpoint_dir));

  for (const tf::Structure& batch : batches) {
    const auto images = batch[0].tensor();
    const auto labels = batch[1].tensor();
    accuracy.update_state(labels, model(images, {.training = false}));
  }
  // The model is built by now. The slots of the optimizer stay unused: nothing is trained here.
  status.assert_existing_objects_matched();
  return accuracy.result().item<double>();
}

}  // namespace custom_training
