#include "evaluator.h"

#include <cstdio>
#include <random>
#include <string>

#include "training.h"

namespace parameter_server {

namespace tf = cohort;

void evaluate_checkpoints(const Options& options) {
  if (options.checkpoints.empty()) {
    std::puts("No --checkpoints: there is nothing to evaluate beside the training.");
    return;
  }
  const examples::HeroStages stages;
  const auto model =
      examples::create_hero_model(stages.feature_lookup_layer.vocabulary_size(), kEmbeddingSize);
  tf::train::Checkpoint checkpoint({{"model", model}});
  std::mt19937 random(static_cast<uint32_t>(options.seed) + 2);
  const auto dataset =
      tf::data::Dataset::from_tensor_slices(examples::feature_and_label_gen(16, random))
          .map(stages)
          .batch(8);
  const std::string last = "-" + std::to_string(options.epochs);
  for (const std::string& path : tf::train::checkpoints_iterator(options.checkpoints)) {
    try {
      checkpoint.restore(path).expect_partial();
    } catch (const tf::NotFoundError&) {
      continue;  // deleted meanwhile
    }
    const tf::keras::metrics::Accuracy accuracy;
    for (const tf::Structure& batch : dataset) {
      const tf::Tensor predictions = model(batch[0]).tensor();
      accuracy.update_state(batch[1].tensor(), tf::cast(tf::greater(predictions, 0.5), tf::int64));
    }
    std::printf("Side-car evaluation of %s: %f\n", path.c_str(), accuracy.result().item<double>());
    std::fflush(stdout);
    if (path.ends_with(last)) return;
  }
}

}  // namespace parameter_server
