// What the latest checkpoint is worth without a strategy.
#pragma once

#include <cohort/cohort.h>

#include <string>

namespace custom_training {

// The accuracy on batches of (images, labels) of a new model that is restored from the directory.
double restored_accuracy(const std::string& checkpoint_dir, const cohort::data::Dataset& batches);

}  // namespace custom_training
