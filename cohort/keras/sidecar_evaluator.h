// Evaluates a model while other tasks train it: each new checkpoint of the training.
//
//   const keras::utils::SidecarEvaluator evaluator(
//       model, dataset, {.checkpoint_dir = "ckpt", .max_evaluations = 20});
//   evaluator.start();   // until ckpt-20 was evaluated
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/keras/model/callback.h"
#include "cohort/keras/model/data.h"
#include "cohort/keras/model/logs.h"
#include "cohort/keras/model/model.h"

namespace cohort::train {
class Checkpoint;
}

namespace cohort::keras::utils {

struct SidecarEvaluatorOptions {
  // Holds checkpoints of a "model" and its "optimizer", or what save_weights and ModelCheckpoint
  // (with .save_weights_only) write of a compiled model. Its state file says which is the latest:
  // all of them, train::CheckpointManager and train::Checkpoint::save write it.
  std::string checkpoint_dir = "";
  std::optional<int64_t> steps = std::nullopt;  // as evaluate's
  // It ends after the first checkpoint of this number or a higher one; missing: never.
  std::optional<int64_t> max_evaluations = std::nullopt;
  std::vector<callbacks::CallbackArgument> callbacks = {};  // as evaluate's
  int verbose = kVerboseAuto;
  // It also ends where no new checkpoint has come for so long; missing: it waits for ever, with a
  // line in the log every minute.
  std::optional<std::chrono::milliseconds> timeout = std::nullopt;
};

// Thread safety: as ModelHandle.
class COHORT_API SidecarEvaluator {
 public:
  // Errors: InvalidArgument (no directory; max_evaluations below 1).
  SidecarEvaluator(const ModelHandle& model, const Data& data, SidecarEvaluatorOptions options);

  // Reads each new checkpoint into the model, and its optimizer's iterations for callbacks, and
  // evaluates it. It may pass over some: those that were removed before they were read, and all but
  // the latest where evaluating takes longer than training. Returns what the last one gave; empty
  // if there was none.
  // Errors: FailedPrecondition (the model is not compiled), InvalidArgument (a checkpoint has no
  // weights, or no iterations of an optimizer, by which what is evaluated is numbered), those of
  // ModelHandle::evaluate and train::Checkpoint::restore, but NotFound.
  Logs start() const;

 private:
  bool restore(const train::Checkpoint& checkpoint, const std::string& path) const;
  bool is_last(const std::string& path) const;

  const ModelHandle model_;
  const Data data_;
  const SidecarEvaluatorOptions options_;
};

}  // namespace cohort::keras::utils
