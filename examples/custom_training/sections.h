// The guide's other forms of the training loop (--sections all).
#pragma once

#include "common/trainer.h"

namespace custom_training {

using examples::Trainer;

// Ten steps of each epoch, by an iterator.
void train_with_iterator(const Trainer& trainer,
                         const cohort::distribute::DistributedDataset& dataset, int epochs);
// A whole epoch in one function.
void train_epoch_by_epoch(const Trainer& trainer,
                          const cohort::distribute::DistributedDataset& dataset, int epochs);
// Why a Mean metric is not the way to follow a scaled loss over several replicas.
void track_loss_across_replicas(const cohort::distribute::Strategy& strategy);

}  // namespace custom_training
