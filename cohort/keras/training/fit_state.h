// The progress of a call of fit, and what callbacks of the library may do with it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "cohort/distribute/step/step_runner.h"
#include "cohort/train/objects/save_group.h"
#include "cohort/train/objects/trackable.h"

namespace cohort::internal {

// The place of fit, for checkpoints: the next step that it runs is step `step` of epoch `epoch`.
class FitProgress final : public train::Trackable {
 public:
  int64_t epoch = 0;
  int64_t step = 0;
  uint64_t shuffle_seed = 0;  // of tensors
  std::shared_ptr<train::SaveGroup> group;

  bool has_checkpoint_values() const override { return true; }
  std::vector<train::CheckpointValue> checkpoint_values() override;
  void prepare_restore(train::RestoreSource& source) override;
  std::shared_ptr<train::SaveGroup> save_group() const override { return group; }
};

// What callbacks of the library may look at, and restore in on_train_begin.
struct FitState {
  std::shared_ptr<FitProgress> progress;
  std::shared_ptr<StepInput> input;
  // Makes the input afresh, with progress->shuffle_seed.
  std::function<void()> make_input;
  // Waits until all steps that `progress` counts are over, so that it and the variables agree.
  std::function<void()> settle;
};

}  // namespace cohort::internal
