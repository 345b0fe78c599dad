// For tests of checkpoints.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/files/simulated_file_system.h"
#include "cohort/train/checkpoint.h"
#include "cohort/train/checkpoint_impl.h"
#include "cohort/train/saving/latest_checkpoint.h"

namespace cohort::train {

// Checkpoints on a file system in memory.
struct CheckpointTest : testing::Test {
  Checkpoint make(std::vector<NamedObject> objects) {
    Checkpoint checkpoint(std::move(objects));
    use_file_system(checkpoint, files);
    return checkpoint;
  }
  std::optional<std::string> latest() { return internal::find_latest(files, "dir"); }

  internal::SimulatedFileSystem files;
};

}  // namespace cohort::train
