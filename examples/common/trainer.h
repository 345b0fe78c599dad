// Guide 004's model, loss, metrics and steps.
#pragma once

#include <cohort/cohort.h>

namespace examples {

cohort::keras::Sequential create_model();

// Everything that training changes, made under the strategy's scope.
class Trainer {
 public:
  Trainer(const cohort::distribute::Strategy& strategy, int64_t global_batch);

  // One step on every replica; the loss of the global batch.
  double distributed_train_step(
      const cohort::distribute::PerReplica<cohort::Structure>& batch) const;
  void distributed_test_step(const cohort::distribute::PerReplica<cohort::Structure>& batch) const;
  // The guide's epoch in one function: the mean loss of its batches.
  double distributed_train_epoch(const cohort::distribute::DistributedDataset& dataset) const;

  // What the guide saves: the model and its optimizer.
  cohort::train::Checkpoint checkpoint() const;
  const cohort::keras::Sequential& model() const { return model_; }
  const cohort::keras::optimizers::Adam& optimizer() const { return optimizer_; }

  cohort::keras::metrics::Mean test_loss;
  cohort::keras::metrics::SparseCategoricalAccuracy train_accuracy;
  cohort::keras::metrics::SparseCategoricalAccuracy test_accuracy;

 private:
  Trainer(const cohort::distribute::Strategy& strategy, int64_t global_batch,
          const cohort::distribute::Scope& scope);
  cohort::Tensor compute_loss(const cohort::Tensor& labels,
                              const cohort::Tensor& predictions) const;
  cohort::Tensor train_step(const cohort::Tensor& images, const cohort::Tensor& labels) const;
  void test_step(const cohort::Tensor& images, const cohort::Tensor& labels) const;

  const cohort::distribute::Strategy& strategy_;
  int64_t global_batch_;
  cohort::keras::Sequential model_;
  cohort::keras::optimizers::Adam optimizer_;
  cohort::keras::losses::SparseCategoricalCrossentropy loss_object_;
};

}  // namespace examples
