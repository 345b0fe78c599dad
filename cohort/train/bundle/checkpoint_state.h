// The state file of a directory of checkpoints ("checkpoint"): which of them is the latest, and
// which a manager still keeps. TensorFlow's CheckpointState in protobuf's text form:
//
//   # crc32c: 0x4dae80bf
//   model_checkpoint_path: "ckpt-2"
//   all_model_checkpoint_paths: "ckpt-1"
//   all_model_checkpoint_paths: "ckpt-2"
//
// The first line is ours: the checksum of all bytes behind it, a comment to TensorFlow. Whatever
// byte of such a file is changed, and wherever it is cut off, it is not taken for a state.
//
//   write_checkpoint_state(files, "dir", {.model_checkpoint_path = "dir/ckpt-2",
//                                         .all_model_checkpoint_paths = {"dir/ckpt-2"}});
//   read_checkpoint_state(files, "dir")->model_checkpoint_path;         // dir/ckpt-2
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/files/file_system.h"

namespace cohort::internal {

struct CheckpointState {
  std::string model_checkpoint_path = "";  // the latest
  std::vector<std::string> all_model_checkpoint_paths = {};
  // Seconds since 1970, one for each path, or none at all.
  std::vector<double> all_model_checkpoint_timestamps = {};
  double last_preserved_timestamp = 0;

  bool operator==(const CheckpointState&) const = default;
};

inline constexpr size_t kMostStateBytes = size_t{16} << 20;
inline constexpr size_t kMostStatePaths = 100'000;

// The bytes of a state file. The latest path is listed too where it is not.
// Errors: InvalidArgument (no latest path; an empty path or one with a NUL; other than one
// timestamp for each listed path; a timestamp that is no finite number; more than kMostStatePaths
// or kMostStateBytes).
std::string format_checkpoint_state(const CheckpointState& state);

// The paths as they stand in `text`, which may be TensorFlow's and have no checksum. The latest
// path is listed. `file`: for the errors.
// Errors: DataLoss (naming the file and the line).
CheckpointState parse_checkpoint_state(std::string_view text, const std::string& file);

struct StateFileOptions {
  std::string name = "checkpoint";
  // Whether the state may name checkpoints outside its directory, by absolute paths.
  bool allow_outside = false;
};

// The path of a checkpoint that the state file `file` of `directory` names as `path`: a name in
// that very directory. An absolute path elsewhere is what TensorFlow wrote before the directory was
// moved, so its last name is taken.
// Errors: DataLoss (a path that goes deeper or up, or has no name).
std::string resolve_checkpoint_path(const std::string& directory, const std::string& path,
                                    const std::string& file);

// Reads the state file and resolves its paths; nullopt: there is none.
// Errors: DataLoss (the file is damaged; a path leads outside; the latest one did before its
// directory was moved, and is not in this directory), as FileSystem's.
std::optional<CheckpointState> read_checkpoint_state(FileSystem& files,
                                                     const std::string& directory,
                                                     const StateFileOptions& options = {});

// Replaces the state file in one step, durably. Paths are as read_checkpoint_state gives them, and
// are written relative to the directory, so that it can be moved. Of more than kMostStatePaths only
// the last are written.
// Errors: InvalidArgument (a path outside of the directory; as format_checkpoint_state), as
// FileSystem's.
void write_checkpoint_state(FileSystem& files, const std::string& directory,
                            const CheckpointState& state, const StateFileOptions& options = {});

}  // namespace cohort::internal
