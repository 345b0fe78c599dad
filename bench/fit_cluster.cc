#include "fit_cluster.h"

#include <ATen/ops/rand.h>
#include <cohort/cohort.h>

#include <iostream>
#include <memory>
#include <sstream>
#include <string>

#include "epoch_clock.h"
#include "timing.h"

namespace bench {
namespace {

namespace tf = cohort;

constexpr int64_t kStepsPerExecution = 10;

tf::data::Dataset dataset_fn(const tf::distribute::InputContext& context) {
  const tf::Tensor x = at::rand({10, 10});
  const tf::Tensor y = at::rand({10, 1}).expand({10, 10});
  return tf::data::Dataset::from_tensor_slices(tf::tuple(x, y))
      .shuffle(10)
      .repeat()
      .shard(context.num_input_pipelines, context.input_pipeline_id)
      .batch(context.get_per_replica_batch_size(64))
      .prefetch(2);
}

class GuideFit {
 public:
  explicit GuideFit(const tf::distribute::Strategy& strategy) : GuideFit(strategy.scope()) {}

  // Seconds that an epoch of so many steps takes, without the first.
  double epoch(int64_t steps) const {
    EpochClock clock;
    model_.fit(data_, {.epochs = EpochClock::kEpochs,
                       .verbose = 0,
                       .callbacks = {clock},
                       .steps_per_epoch = steps});
    return clock.epoch();
  }

 private:
  explicit GuideFit(const tf::distribute::Scope&) : model_({tf::keras::layers::Dense(10)}) {
    model_.compile({.optimizer = tf::keras::optimizers::SGD(),
                    .loss = "mse",
                    .steps_per_execution = kStepsPerExecution});
  }

  tf::keras::Sequential model_;
  tf::keras::DatasetCreator data_{dataset_fn};
};

int answer_commands(const GuideFit& fit) {
  for (std::string line; std::getline(std::cin, line);) {
    if (line == "version") {
      std::cout << "Cohort " << tf::kVersion << std::endl;
      continue;
    }
    std::istringstream words(line.substr(line.find(' ') + 1));
    double seconds = 0;
    words >> seconds;
    std::cout << 1 / time_runs(seconds / 2, kStepsPerExecution,
                               [&](int64_t steps) { return fit.epoch(steps); })
              << std::endl;
  }
  return 0;
}

}  // namespace

int run_fit_task() {
  tf::config::keep_freed_memory();
  tf::logging::set_level(tf::logging::Level::kWarning);
  const tf::distribute::cluster_resolver::TFConfigClusterResolver resolver;
  // Not a local one, whose strings g++ 12 takes for uninitialized.
  const auto options = std::make_unique<tf::distribute::ParameterServerStrategyOptions>();
  const tf::distribute::ParameterServerStrategy strategy(resolver, *options);
  const GuideFit fit(strategy);
  if (resolver.task_type() == "chief") return answer_commands(fit);
  try {
    while (true) fit.epoch(1);
  } catch (const tf::Error&) {  // the chief has ended, and the cluster with it
    return 0;
  }
}

}  // namespace bench
