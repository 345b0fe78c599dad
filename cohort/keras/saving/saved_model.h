// Whole models in directories:
//
//   model.json           the architecture in Keras's form, and what compile said
//   variables-N.index    weights and the optimizer, a checkpoint
//   variables-N.data-00000-of-00001
//
// model.json names the checkpoint, is replaced in one step, and only when the checkpoint is there:
// whoever looks finds the model saved before or the new one.
#pragma once

#include <string>

#include "cohort/core/files/file_system.h"
#include "cohort/keras/models.h"

namespace cohort::internal {

inline constexpr const char* kModelFile = "model.json";

// See ModelHandle::save and models::load_model.
void save_model(const keras::ModelHandle& model, const std::string& path,
                const keras::SaveOptions& options, FileSystem& files = posix_file_system());
keras::ModelHandle load_model(const std::string& path, const keras::models::LoadOptions& options,
                              FileSystem& files = posix_file_system());

}  // namespace cohort::internal
