// Any bytes are either a whole checkpoint state or a DataLossError, and no state leads out of its
// directory.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>

#include "cohort/core/error.h"
#include "cohort/train/bundle/checkpoint_state.h"

namespace {

using cohort::DataLossError;
using cohort::internal::CheckpointState;

void require(bool holds, std::string_view property) {
  if (holds) return;
  std::cerr << "fuzz_checkpoint_state: broken property: " << property << '\n';
  std::abort();
}

void require_file_named(const DataLossError& error) {
  require(std::string_view(error.what()).find("'/root/dir/state'") != std::string_view::npos,
          "the error names the file");
}

std::optional<CheckpointState> parse(std::string_view text) {
  try {
    return cohort::internal::parse_checkpoint_state(text, "/root/dir/state");
  } catch (const DataLossError& error) {
    require_file_named(error);
    return std::nullopt;
  }
}

// By the standard library's idea of paths rather than by ours.
void require_within(const std::string& directory, const std::string& path) {
  std::string resolved;
  try {
    resolved = cohort::internal::resolve_checkpoint_path(directory, path, "/root/dir/state");
  } catch (const DataLossError& error) {
    require_file_named(error);
    return;
  }
  const auto root = std::filesystem::path("/cwd" / std::filesystem::path(directory));
  const auto normal = ("/cwd" / std::filesystem::path(resolved)).lexically_normal();
  const auto within = normal.lexically_relative(root.lexically_normal());
  require(!within.empty() && within != "." && *within.begin() != "..",
          "a path stays within the directory");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::optional<CheckpointState> state = parse(text);
  if (!state) return 0;
  const std::string written = cohort::internal::format_checkpoint_state(*state);
  require(parse(written) == state, "what is written is read back");
  for (const std::string& path : state->all_model_checkpoint_paths) {
    require(path.size() <= size, "a path is no longer than its file");
    require_within("/root/dir", path);
    require_within("dir", path);
  }
  return 0;
}
