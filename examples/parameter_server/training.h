// What every task of the cluster declares, and what the coordinator does with it.
#pragma once

#include <cohort/cohort.h>

#include "common/heroes.h"
#include "options.h"

namespace parameter_server {

inline constexpr int kStepsPerEpoch = 5;
inline constexpr int64_t kEmbeddingSize = 16384;

// The model, the step and the inputs: the same in every task, declared before its server's join().
class Program {
 public:
  Program(const cohort::distribute::ParameterServerStrategy& strategy, const Options& options);

  // The coordinator's part.
  void train();
  // What it schedules in a loop, and what makes the workers' input for that.
  const cohort::distribute::WorkerFunction& step_function() const { return step_fn_; }
  const cohort::distribute::WorkerFunction& dataset_function() const { return dataset_fn_; }

 private:
  cohort::Tensor predict(const cohort::Structure& batch_data, bool training) const;
  void evaluate_inline() const;
  void evaluate_on_workers(const cohort::distribute::coordinator::ClusterCoordinator& coordinator);

  const cohort::distribute::ParameterServerStrategy strategy_;
  const Options options_;
  cohort::distribute::Scope scope_;
  const examples::HeroStages stages_;
  const cohort::keras::Functional model_;
  const cohort::keras::optimizers::RMSprop optimizer_;
  const cohort::keras::metrics::Accuracy accuracy_;
  const cohort::keras::metrics::Accuracy eval_accuracy_;
  const cohort::distribute::WorkerFunction dataset_fn_;
  const cohort::distribute::WorkerFunction step_fn_;
  const cohort::distribute::WorkerFunction eval_dataset_fn_;
  const cohort::distribute::WorkerFunction eval_step_;
};

}  // namespace parameter_server
