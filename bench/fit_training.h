// Trainings whose epochs the fit benchmark times.
#pragma once

#include <cohort/cohort.h>

#include <memory>
#include <string>
#include <vector>

#include "samples.h"

namespace bench {

class EpochTraining {
 public:
  virtual ~EpochTraining() = default;
  // Trains for three epochs of so many steps. Returns the seconds from the end of the first to that of
  // the last, halved: what an epoch takes, with all that its end entails.
  virtual double epoch(int64_t steps) = 0;
};

// What one fit says of a callback: seconds of neighbouring epochs with it and without.
struct CallbackPairs {
  struct Pair {
    double with = 0;
    double without = 0;
  };
  int64_t steps = 0;  // of each epoch
  std::vector<Pair> pairs;
  double stall = 0;  // seconds that the callback has held training up at the end of an epoch, at most
};

struct TrainingPlan {
  std::string kind;       // "loop": guide 004's loop; "fit"
  std::string model;      // "cnn": guide 004's; "wide": 5.8 million weights in dense layers
  int64_t batch = 0;      // of all replicas together
  std::string directory;  // for what callbacks write
};

// The name of the samples that `model` trains on.
std::string samples_of(const std::string& model);

// Trains by fit in epochs of about so many seconds, in every other of which a callback is at work:
// "checkpoint" (saves the whole model), "tensorboard" (scalars, and histograms of the weights each other time).
// Errors: std::invalid_argument (an unknown callback or model).
CallbackPairs time_callback(const std::string& callback,
                            const cohort::distribute::Strategy& strategy, const Samples& samples,
                            const TrainingPlan& plan, double seconds, int64_t pairs);

// Errors: std::invalid_argument (an unknown kind or model).
std::unique_ptr<EpochTraining> make_training(const cohort::distribute::Strategy& strategy,
                                             const Samples& samples, const TrainingPlan& plan);

}  // namespace bench
