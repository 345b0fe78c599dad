// Trainings whose epochs the fit benchmark times.
#pragma once

#include <cohort/cohort.h>

#include <memory>
#include <string>

#include "samples.h"

namespace bench {

class EpochTraining {
 public:
  virtual ~EpochTraining() = default;
  // Trains for three epochs of so many steps. Returns the seconds from the end of the first to that of
  // the last, halved: what an epoch takes, with all that its end entails.
  virtual double epoch(int64_t steps) = 0;
  // Of the last two epochs of the latest call, the longer one: how long ModelCheckpoint held training
  // up, in seconds. 0 without one.
  virtual double stall() const { return 0; }
};

struct TrainingPlan {
  // "loop": guide 004's loop; "fit", and with callbacks: "checkpoint" (a whole model each epoch),
  // "tensorboard" (scalars each epoch, histograms of the weights each other one).
  std::string kind;
  std::string model;      // "cnn": guide 004's; "wide": 5.8 million weights in dense layers
  int64_t batch = 0;      // of all replicas together
  std::string directory;  // for what callbacks write
};

// The name of the samples that `model` trains on.
std::string samples_of(const std::string& model);

// Errors: std::invalid_argument (an unknown kind or model).
std::unique_ptr<EpochTraining> make_training(const cohort::distribute::Strategy& strategy,
                                             const Samples& samples, const TrainingPlan& plan);

}  // namespace bench
