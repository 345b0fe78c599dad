// The same module under a strategy: two replicas, shuffling, accuracy, validation, a line an epoch.
#include <cohort/cohort.h>
#include <torch/nn/modules/loss.h>

#include "common/images.h"
#include "net.h"

namespace tf = cohort;

int main() {
  return tf::run_program([] {
    const auto [train, test] = examples::load_images({});
    torch::manual_seed(1);
    tf::config::set_logical_device_configuration("CPU", 2);
    const tf::distribute::MirroredStrategy strategy({"CPU:0", "CPU:1"});
    const auto scope = strategy.scope();
    const tf::keras::TorchModel model([] { return torch_fit::Net(); });
    model.compile({.optimizer = tf::keras::optimizers::Adam({.learning_rate = 1e-3}),
                   .loss = torch::nn::CrossEntropyLoss(),
                   .metrics = {"accuracy"}});
    model.fit(train.images, train.labels.to(tf::int64),
              {.batch_size = 64,
               .epochs = 2,
               .validation_data = tf::keras::Data(test.images, test.labels.to(tf::int64))});
  });
}
