// What the examples in comments take for granted. Nothing here is ever linked.
#pragma once

#include <ATen/Functions.h>

#include <chrono>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "cohort/optim/adam.h"

namespace cohort::in_examples {

namespace tf = cohort;
using namespace std::chrono_literals;

extern Tensor images, labels, x, y, loss, one, logits, predictions, per_example_losses, value,
    initial_value;
extern std::vector<Tensor> gradients;
extern std::string path, directory, dir;
extern std::vector<std::string> files;
extern data::Dataset dataset;
extern data::DatasetIterator iterator;
extern distribute::MirroredStrategy strategy;
extern distribute::DistributedDataset dist_dataset;
extern distribute::PerReplica<Structure> batch;
extern Variable weight, bias, variable;
extern keras::Sequential model;
extern keras::optimizers::Adam optimizer;
extern GradientTape tape;
extern train::Checkpoint checkpoint;
extern double total;

}  // namespace cohort::in_examples

// Names that stand for functions of the reader's. As locals, because some are namespaces, too.
#define EXAMPLE_NAMES                                                                          \
  const auto train = [](auto&&...) {};                                                         \
  const auto use = train;                                                                      \
  const auto evaluate = train;                                                                 \
  const auto train_step = [](const ::cohort::Structure&) { return ::cohort::in_examples::x; }; \
  const auto predict = train_step;
