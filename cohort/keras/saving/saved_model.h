// Whole models in directories:
//
//   model.json           the architecture in Keras's form, and what compile said
//   variables-N.index    weights and the optimizer, a checkpoint
//   variables-N.data-00000-of-00001
//
// model.json names the checkpoint, is replaced in one step, and only when the checkpoint is there:
// whoever looks finds the model saved before or the new one. Who has read model.json before it was
// replaced may find its checkpoint gone, and reads it again.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cohort/core/files/file_system.h"
#include "cohort/keras/saving/models.h"
#include "cohort/train/checkpoint.h"

namespace cohort::internal {

inline constexpr const char* kModelFile = "model.json";

class CheckpointDirectory;

// What save and save_weights write: the children of the model and, where it is compiled or such
// values wait for compile, "optimizer".
train::Checkpoint weights_checkpoint(const keras::ModelHandle& model);

// Why a save would have none of the model's weights: they are still to be made, and no restored
// values wait for them.
std::optional<std::string> why_without_weights(keras::Model& model);

// Saves one model, now and later on. Thread safety: none.
class ModelSaver {
 public:
  struct Options {
    bool overwrite = true;
    bool asynchronous = false;  // save returns when the values are copied; a thread does the rest
    // No other process may save a model beside this one as long as the saver lives.
    bool keeps_others_out = false;
  };

  ModelSaver(const keras::ModelHandle& model, const Options& options,
             FileSystem& files = posix_file_system());

  // Whether the model can be saved at all. Errors: Unimplemented, as ModelHandle::to_json.
  void check() const;
  // See ModelHandle::save. Waits for the save before. COLLECTIVE, as wait.
  // Errors: also those of that save, as Checkpoint::write's.
  void save(const std::string& path);
  // Returns when no save is under way. Errors: those of that save.
  void wait();

 private:
  keras::ModelHandle model_;
  Options options_;
  FileSystem& files_;
  train::Checkpoint checkpoint_;
  std::shared_ptr<CheckpointDirectory> around_;  // the directory that the model's is in
  bool warned_ = false;                          // that what compile said cannot be saved
};

// See ModelHandle::save and models::load_model.
void save_model(const keras::ModelHandle& model, const std::string& path,
                const keras::SaveOptions& options, FileSystem& files = posix_file_system());
keras::ModelHandle load_model(const std::string& path, const keras::models::LoadOptions& options,
                              FileSystem& files = posix_file_system());

}  // namespace cohort::internal
