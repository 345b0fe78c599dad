// Guide 004's model by Model::fit: the strategy is the only difference.
//
//   build/release/bin/fit --strategy mirrored --replicas 2 --data DIR
//   cohort launch --workers 2 -- build/release/bin/fit --strategy multi_worker --data DIR
//   cohort launch --chief --workers 2 --ps 1 -- build/release/bin/fit --strategy parameter_server
//   --data DIR
#include <cohort/cohort.h>

#include "common/images.h"
#include "common/strategies.h"
#include "common/trainer.h"
#include "options.h"

namespace tf = cohort;

namespace fit {
namespace {

namespace callbacks = tf::keras::callbacks;

std::vector<callbacks::CallbackArgument> make_callbacks(const Options& options) {
  std::vector<callbacks::CallbackArgument> list;
  if (!options.backup.empty()) {
    list.emplace_back(callbacks::BackupAndRestore(options.backup, {.save_freq = 5}));
  }
  if (!options.checkpoints.empty()) {
    list.emplace_back(
        callbacks::ModelCheckpoint({.filepath = options.checkpoints + "/epoch-{epoch:02d}"}));
  }
  if (!options.logs.empty()) {
    list.emplace_back(callbacks::TensorBoard({.log_dir = options.logs, .histogram_freq = 1}));
  }
  return list;
}

void run(const Options& options) {
  tf::config::keep_freed_memory();
  tf::random::set_seed(options.seed);
  tf::config::set_logical_device_configuration(
      "CPU", options.strategy == "one_device" ? 1 : options.replicas);
  const examples::MadeStrategy made = examples::make_strategy(options.strategy);
  const auto scope = made.strategy.scope();
  const tf::keras::Sequential model = examples::create_model();
  model.compile({.optimizer = tf::keras::optimizers::Adam({.learning_rate = 1e-3}),
                 .loss = tf::keras::losses::SparseCategoricalCrossentropy({.from_logits = true}),
                 .metrics = {"accuracy"}});

  const auto [train, test] = examples::load_images(
      {.data = options.data, .dataset = options.dataset, .seed = options.seed});
  model.fit(train.images, train.labels,
            {.batch_size = options.global_batch,
             .epochs = options.epochs,
             .verbose = options.verbose,
             .callbacks = make_callbacks(options),
             .validation_data = tf::keras::Data(test.images, test.labels)});
}

}  // namespace
}  // namespace fit

int main(int argc, char** argv) {
  const fit::Options options = fit::parse_options(argc, argv);
  return tf::run_program([&] { fit::run(options); });
}
