#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/train/bundle/bundle_reader.h"
#include "cohort/train/bundle/checkpoint_state.h"
#include "tools/checkpoint_commands.h"
#include "tools/checkpoint_paths.h"
#include "tools/checkpoint_tensors.h"
#include "tools/output.h"
#include "tools/printable.h"

namespace cohort::tools {
namespace {

using internal::BundleReader;
using internal::FileSystem;
using internal::quoted;
using internal::str;
using Json = nlohmann::ordered_json;

struct Checkpoint {
  std::string prefix;
  size_t tensors = 0;
  uint64_t bytes = 0;
  std::optional<int64_t> time;
  bool latest = false;
  std::string damage;  // why it cannot be read
};

struct Directory {
  std::vector<Checkpoint> checkpoints;
  std::vector<std::string> gone;  // that the state file lists
  std::string state_damage;

  bool damaged() const {
    return !state_damage.empty() ||
           std::any_of(checkpoints.begin(), checkpoints.end(),
                       [](const Checkpoint& checkpoint) { return !checkpoint.damage.empty(); });
  }
};

Checkpoint look_at(FileSystem& files, const std::string& prefix) {
  Checkpoint checkpoint;
  checkpoint.prefix = prefix;
  checkpoint.time = time_written(prefix);
  try {
    const BundleReader bundle(files, prefix);
    checkpoint.tensors = bundle.entries().size();
    checkpoint.bytes = bundle.data_bytes();
  } catch (const Error& error) {
    checkpoint.damage = error.what();
  }
  return checkpoint;
}

Directory look_into(FileSystem& files, const std::string& path) {
  Directory directory;
  for (const std::string& prefix : checkpoints_in(files, path)) {
    directory.checkpoints.push_back(look_at(files, prefix));
  }
  try {
    const auto state = internal::read_checkpoint_state(files, path);
    if (!state) return directory;
    for (Checkpoint& checkpoint : directory.checkpoints) {
      checkpoint.latest = checkpoint.prefix == state->model_checkpoint_path;
    }
    for (const std::string& listed : state->all_model_checkpoint_paths) {
      if (!files.exists(internal::bundle_index_path(listed))) directory.gone.push_back(listed);
    }
  } catch (const Error& error) {
    directory.state_damage = error.what();
  }
  return directory;
}

void print_directory(const Directory& directory, std::ostream& out) {
  std::vector<std::vector<std::string>> rows;
  for (const Checkpoint& checkpoint : directory.checkpoints) {
    std::vector<std::string> row = {printable(internal::base_name(checkpoint.prefix))};
    if (checkpoint.damage.empty()) {
      row.push_back(counted(checkpoint.tensors, "tensor"));
      row.push_back(counted(checkpoint.bytes, "byte"));
      row.push_back(checkpoint.time ? time_text(*checkpoint.time) : "-");
      if (checkpoint.latest) row.emplace_back("latest");
    } else {
      row.push_back("damaged: " + printable(checkpoint.damage));
    }
    rows.push_back(std::move(row));
  }
  print_table(rows, out);
  for (const std::string& gone : directory.gone) {
    out << "gone, although the state file lists it: "
        << printable(quoted(internal::base_name(gone))) << '\n';
  }
  if (!directory.state_damage.empty()) {
    out << "the state file is damaged: " << printable(directory.state_damage) << '\n';
  }
}

Json to_json(const Directory& directory) {
  Json json = {{"checkpoints", Json::array()}, {"gone", Json::array()}};
  for (const Checkpoint& checkpoint : directory.checkpoints) {
    Json entry = {{"prefix", checkpoint.prefix}, {"latest", checkpoint.latest}};
    if (checkpoint.time) entry["time"] = time_text(*checkpoint.time);
    if (checkpoint.damage.empty()) {
      entry["tensors"] = checkpoint.tensors;
      entry["bytes"] = checkpoint.bytes;
    } else {
      entry["damage"] = checkpoint.damage;
    }
    json["checkpoints"].push_back(std::move(entry));
  }
  for (const std::string& gone : directory.gone) json["gone"].push_back(gone);
  if (!directory.state_damage.empty()) json["state_damage"] = directory.state_damage;
  return json;
}

int list_directory(FileSystem& files, const LsOptions& options, std::ostream& out) {
  const Directory directory = look_into(files, options.path);
  if (directory.checkpoints.empty() && directory.gone.empty() && directory.state_damage.empty()) {
    throw NotFoundError(str("no checkpoints in ", quoted(options.path)));
  }
  if (options.json) {
    print_json(to_json(directory), out);
  } else {
    print_directory(directory, out);
  }
  return directory.damaged() ? kExitBadData : kExitOk;
}

void print_tensors(const BundleReader& bundle, bool raw_keys, std::ostream& out) {
  const TensorNames names(bundle);
  std::vector<std::vector<std::string>> rows;
  uint64_t bytes = 0;
  for (const auto& [key, entry] : bundle.entries()) {
    bytes += tensor_bytes(entry);
    rows.push_back({printable(raw_keys ? key : names.name(key)), internal::type_name(entry.type),
                    shape_text(entry.shape), counted(tensor_bytes(entry), "byte")});
    if (!entry.slices.empty()) rows.back().push_back(counted(entry.slices.size(), "part"));
  }
  print_table(rows, out);
  out << counted(bundle.entries().size(), "tensor") << ", " << counted(bytes, "byte") << '\n';
}

Json tensors_json(const BundleReader& bundle) {
  const TensorNames names(bundle);
  Json json = {{"prefix", bundle.prefix()}, {"tensors", Json::array()}};
  for (const auto& [key, entry] : bundle.entries()) {
    json["tensors"].push_back({{"name", names.name(key)},
                               {"key", key},
                               {"dtype", internal::type_name(entry.type)},
                               {"shape", entry.shape},
                               {"bytes", tensor_bytes(entry)},
                               {"parts", entry.slices.size()}});
  }
  return json;
}

}  // namespace

int list_checkpoints(FileSystem& files, const LsOptions& options, std::ostream& out) {
  const auto prefix = checkpoint_prefix(files, options.path);
  if (!prefix) return list_directory(files, options, out);
  const BundleReader bundle(files, *prefix);
  if (options.json) {
    print_json(tensors_json(bundle), out);
  } else {
    print_tensors(bundle, options.raw_keys, out);
  }
  return kExitOk;
}

}  // namespace cohort::tools
