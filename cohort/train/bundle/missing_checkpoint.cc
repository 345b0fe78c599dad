#include "cohort/train/bundle/missing_checkpoint.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/train/bundle/bundle_entry.h"
#include "cohort/train/bundle/checkpoint_state.h"

namespace cohort::internal {
namespace {

constexpr std::string_view kIndex = ".index";
constexpr std::string_view kData = ".data-";
constexpr std::string_view kModel = "model.json";

// "run/ckpt-1" of "run/ckpt-1.index" and "run/ckpt-1.data-00000-of-00001".
std::optional<std::string> prefix_of_file(const std::string& path) {
  if (path.ends_with(kIndex)) return path.substr(0, path.size() - kIndex.size());
  const size_t data = path.rfind(kData);
  if (data == std::string::npos || path.find('/', data) != std::string::npos) return std::nullopt;
  return path.substr(0, data);
}

// Nothing where it is no directory.
std::optional<std::vector<std::string>> entries_of(FileSystem& files, const std::string& path) {
  try {
    return files.list(path);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// The latest checkpoint, by the state file if there is one; nothing: none.
std::optional<std::string> checkpoint_in(FileSystem& files, const std::string& directory,
                                         const std::vector<std::string>& entries) {
  try {
    const auto state = read_checkpoint_state(files, directory);
    if (state && files.exists(bundle_index_path(state->model_checkpoint_path))) {
      return state->model_checkpoint_path;
    }
  } catch (const Error&) {  // there may be checkpoints all the same
  }
  for (auto name = entries.rbegin(); name != entries.rend(); ++name) {
    if (name->ends_with(kIndex)) return prefix_of_file(join_path(directory, *name));
  }
  return std::nullopt;
}

}  // namespace

std::string describe_missing_checkpoint(FileSystem& files, const std::string& prefix) {
  const auto prefix_of = prefix_of_file(prefix);
  if (prefix_of && files.exists(bundle_index_path(*prefix_of))) {
    return str(quoted(prefix), " is one of the files of checkpoint ", quoted(*prefix_of),
               ": pass that path, without the ending");
  }
  const auto entries = entries_of(files, prefix);
  if (!entries) {
    return str("there is no checkpoint ", quoted(prefix), ": ", quoted(bundle_index_path(prefix)),
               " is missing");
  }
  if (std::find(entries->begin(), entries->end(), kModel) != entries->end()) {
    return str(quoted(prefix), " is the directory of a whole model: models::load_model reads it");
  }
  if (const auto found = checkpoint_in(files, prefix, *entries)) {
    return str(quoted(prefix), " is a directory: pass a checkpoint in it, such as ", quoted(*found),
               " (latest_checkpoint finds the latest)");
  }
  return str(quoted(prefix), " is a directory, and there is no checkpoint in it");
}

}  // namespace cohort::internal
