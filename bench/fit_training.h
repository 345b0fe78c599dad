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
  // Trains for three epochs of so many steps. Returns the seconds from the end of the first to that
  // of the last, halved: what an epoch takes, with all that its end entails.
  virtual double epoch(int64_t steps) = 0;
};

// Neighbouring measurements of training with something and without it.
struct TimedPairs {
  struct Pair {
    double with = 0;  // samples a second
    double without = 0;
  };
  std::vector<Pair> pairs;
  double stall = 0;  // seconds that a callback has held training up at the end of an epoch, at most
};

struct TrainingPlan {
  std::string model;      // "cnn": guide 004's; "wide": 5.8 million weights in dense layers
  int64_t batch = 0;      // of all replicas together
  std::string directory;  // for what callbacks write
};

// The name of the samples that `model` trains on.
std::string samples_of(const std::string& model);

// Trains by fit in epochs of about so many seconds, in every other of which a callback is at work:
// "checkpoint" (saves the whole model), "tensorboard" (scalars, and histograms of the weights each
// other time).
// Errors: std::invalid_argument (an unknown callback or model).
TimedPairs time_callback(const std::string& callback, const cohort::distribute::Strategy& strategy,
                         const Samples& samples, const TrainingPlan& plan, double seconds,
                         int64_t pairs);

// Trains by fit (with) and by guide 004's loop (without), each for about so many seconds a pair, in
// short turns. Two trainings of the same work differ by a few percent for as long as they live,
// whichever is fit: each pair has new ones.
TimedPairs time_fit_and_loop(const cohort::distribute::Strategy& strategy, const Samples& samples,
                             const TrainingPlan& plan, double seconds, int64_t pairs);

// Errors: std::invalid_argument (an unknown model).
std::unique_ptr<EpochTraining> make_fit(const cohort::distribute::Strategy& strategy,
                                        const Samples& samples, const TrainingPlan& plan);

}  // namespace bench
