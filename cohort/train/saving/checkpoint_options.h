// Options of a checkpoint, and the objects that one is made of.
#pragma once

#include <chrono>
#include <string>
#include <utility>

#include "cohort/train/objects/trackable.h"

namespace cohort::train {

struct CheckpointOptions {
  // save returns when the values are copied; a thread writes them. Errors of the writing are thrown
  // by the next call of save, write, restore, read or wait. Only one save is in progress at a time:
  // the next one waits for it.
  bool enable_async = false;
  // How long to wait for a save that is under way.
  std::chrono::milliseconds timeout = std::chrono::minutes(30);
  // How long to wait for the other processes of the group (see save_group.h).
  std::chrono::milliseconds group_timeout = std::chrono::minutes(10);
};

struct RestoreOptions {
  // If the checkpoint is damaged or missing, take the latest good one before it of the same name
  // and directory ("ckpt-4" before "ckpt-5"), and log a warning.
  bool fall_back = false;
  // How long to wait for a save that is under way.
  std::chrono::milliseconds timeout = std::chrono::minutes(30);
  // How long to wait for the other processes of the group.
  std::chrono::milliseconds group_timeout = std::chrono::minutes(10);
};

struct LatestOptions {
  // If the directory's state file is damaged, or the checkpoint that it names is missing, take the
  // checkpoint with the highest number, and log a warning.
  bool fall_back = false;
};

using NamedObject = std::pair<std::string, TrackableHandle>;

}  // namespace cohort::train
