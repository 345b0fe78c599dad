// Checkpoint states as files of a directory, and where the paths in them lead.
#include <algorithm>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/files/temporary_files.h"
#include "cohort/core/text.h"
#include "cohort/train/bundle/bundle_entry.h"
#include "cohort/train/bundle/checkpoint_state.h"

namespace cohort::internal {
namespace {

// A path's names, without those that say nothing.
std::vector<std::string_view> names_of(std::string_view path) {
  std::vector<std::string_view> names;
  while (!path.empty()) {
    const size_t length = std::min(path.find('/'), path.size());
    const std::string_view name = path.substr(0, length);
    if (!name.empty() && name != ".") names.push_back(name);
    path.remove_prefix(std::min(length + 1, path.size()));
  }
  return names;
}

bool leads_up(const std::vector<std::string_view>& names) {
  return std::find(names.begin(), names.end(), "..") != names.end();
}

// `path` from `directory` on, by what is written in both; nullopt: it is not below.
std::optional<std::string> path_within(std::string_view directory, std::string_view path) {
  if (directory.starts_with('/') != path.starts_with('/')) return std::nullopt;
  const auto above = names_of(directory);
  auto names = names_of(path);
  if (names.size() <= above.size() || !std::equal(above.begin(), above.end(), names.begin())) {
    return std::nullopt;
  }
  names.erase(names.begin(), names.begin() + static_cast<ptrdiff_t>(above.size()));
  if (leads_up(names)) return std::nullopt;
  std::string within;
  for (std::string_view name : names) within = join_path(within, name);
  return within;
}

std::string read_state(const ReadableFile& file, const std::string& path) {
  if (file.size() > kMostStateBytes) {
    throw DataLossError(str(quoted(path), " has ", file.size(),
                            " bytes, more than any checkpoint state; it is something else"));
  }
  std::string bytes(file.size(), '\0');
  file.read(0, bytes.data(), bytes.size());
  return bytes;
}

std::string stored_path(const std::string& directory, const std::string& path,
                        const StateFileOptions& options) {
  const auto within = path_within(directory, path);
  if (within && within->find('/') == within->npos) return *within;
  if (options.allow_outside && path.starts_with('/')) return path;
  throw InvalidArgumentError(str("checkpoint ", quoted(path), " is not in ", quoted(directory),
                                 ", whose state file is to name it; save it there"));
}

// A manager that keeps all for ever stops naming the oldest rather than failing.
template <class T>
void drop_oldest(std::vector<T>& values) {
  if (values.size() <= kMostStatePaths) return;
  values.erase(values.begin(), values.end() - static_cast<ptrdiff_t>(kMostStatePaths));
}

// The latest one was elsewhere when the state was written, and is not here either.
void check_moved_latest(FileSystem& files, const std::string& written, const std::string& resolved,
                        const std::string& file) {
  if (written == resolved || !written.starts_with('/')) return;
  if (files.exists(bundle_index_path(resolved))) return;
  throw DataLossError(str(quoted(file), " names a checkpoint outside of its directory, ",
                          quoted(written), ", and there is none of that name in it; restore that ",
                          "one by its path if you trust it"));
}

}  // namespace

std::string resolve_checkpoint_path(const std::string& directory, const std::string& path,
                                    const std::string& file) {
  // Only a name is taken: a directory in between could be a link to anywhere.
  const bool absolute = path.starts_with('/');
  const auto names = names_of(path);
  const auto within = absolute ? path_within(directory, path) : std::nullopt;
  const bool deeper = absolute ? within && within->find('/') != within->npos : names.size() > 1;
  if (names.empty() || names.back() == ".." || deeper) {
    throw DataLossError(str(quoted(file), " names the checkpoint ", quoted(path),
                            ", which is not in its directory itself"));
  }
  return join_path(directory, names.back());
}

std::optional<CheckpointState> read_checkpoint_state(FileSystem& files,
                                                     const std::string& directory,
                                                     const StateFileOptions& options) {
  const std::string file = join_path(directory, options.name);
  std::unique_ptr<ReadableFile> readable;
  try {
    readable = files.open(file);
  } catch (const NotFoundError&) {
    return std::nullopt;
  }
  CheckpointState state = parse_checkpoint_state(read_state(*readable, file), file);
  const auto resolve = [&](std::string& path) {
    if (options.allow_outside && path.starts_with('/')) return;
    path = resolve_checkpoint_path(directory, path, file);
  };
  const std::string written = state.model_checkpoint_path;
  resolve(state.model_checkpoint_path);
  check_moved_latest(files, written, state.model_checkpoint_path, file);
  for (std::string& path : state.all_model_checkpoint_paths) resolve(path);
  return state;
}

void write_checkpoint_state(FileSystem& files, const std::string& directory,
                            const CheckpointState& state, const StateFileOptions& options) {
  CheckpointState stored = state;
  stored.model_checkpoint_path = stored_path(directory, state.model_checkpoint_path, options);
  for (std::string& path : stored.all_model_checkpoint_paths) {
    path = stored_path(directory, path, options);
  }
  drop_oldest(stored.all_model_checkpoint_paths);
  drop_oldest(stored.all_model_checkpoint_timestamps);
  const std::string text = format_checkpoint_state(stored);
  const std::string temporary = temporary_path(directory, options.name);
  const auto file = files.create(temporary, {.expected_bytes = text.size()});
  try {
    file->append(text);
    file->sync();
    file->close();
    files.rename(temporary, join_path(directory, options.name));
  } catch (...) {
    try {
      files.remove(temporary);
    } catch (...) {  // the first error says more; the next writer removes what is left
    }
    throw;
  }
  files.sync_directory(directory);
}

}  // namespace cohort::internal
