#include "cohort/train/saving/latest_checkpoint.h"

#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/observe/logging.h"
#include "cohort/train/bundle/bundle_entry.h"
#include "cohort/train/bundle/checkpoint_state.h"
#include "cohort/train/saving/checkpoint_numbers.h"

namespace cohort::internal {

FoundLatest look_for_latest(FileSystem& files, const std::string& directory,
                            const train::LatestOptions& options) {
  std::string problem;
  bool has_state = true;
  try {
    const std::optional<CheckpointState> state = read_checkpoint_state(files, directory);
    if (!state && !options.fall_back) return {};
    if (state && files.exists(bundle_index_path(state->model_checkpoint_path))) {
      return {.path = state->model_checkpoint_path};
    }
    has_state = state.has_value();
    problem = state ? str("the latest checkpoint of '", directory, "' is said to be '",
                          state->model_checkpoint_path, "', but it is not there")
                    : str("'", directory, "' has no state file");
  } catch (const DataLossError& error) {
    const std::string highest = highest_checkpoint(files, directory);
    if (!options.fall_back) {
      throw DataLossError(str(error.what(),
                              highest.empty() ? ""
                                              : "; the checkpoint with the highest "
                                                "number there is '",
                              highest, highest.empty() ? "" : "'"));
    }
    problem = error.what();
  }
  const std::string highest = options.fall_back ? highest_checkpoint(files, directory) : "";
  // If there is no state file either, nothing was saved there.
  if (highest.empty()) return {.problem = has_state ? problem : ""};
  return {.path = highest,
          .problem = str(problem, "; taking the one with the highest number, '", highest, "'")};
}

std::optional<std::string> find_latest(FileSystem& files, const std::string& directory,
                                       const train::LatestOptions& options) {
  FoundLatest found = look_for_latest(files, directory, options);
  if (!found.problem.empty()) log_warning(found.problem);
  return std::move(found.path);
}

}  // namespace cohort::internal
