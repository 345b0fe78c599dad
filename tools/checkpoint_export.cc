#include <fnmatch.h>

#include <algorithm>
#include <map>

#include "cohort/core/classic_locale.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/train/bundle/bundle_reader.h"
#include "cohort/train/objects/object_graph.h"
#include "cohort/train/safetensors/safetensors_dtype.h"
#include "cohort/train/safetensors/safetensors_file.h"
#include "tools/checkpoint_commands.h"
#include "tools/checkpoint_paths.h"
#include "tools/checkpoint_tensors.h"
#include "tools/printable.h"

namespace cohort::tools {
namespace {

using internal::BundleReader;
using internal::FileSystem;
using internal::quoted;
using internal::SafetensorsHeader;
using internal::str;

// What is exported: keys of the checkpoint by their names in the file to write.
struct Selection {
  SafetensorsHeader header;
  std::map<std::string, std::string> keys;
};

bool is_wanted(const std::string& name, const std::vector<std::string>& globs) {
  const internal::ClassicLocale classic;
  return globs.empty() || std::any_of(globs.begin(), globs.end(), [&](const std::string& glob) {
           return ::fnmatch(glob.c_str(), name.c_str(), 0) == 0;
         });
}

Selection select(const BundleReader& bundle, const ExportOptions& options, std::ostream& out) {
  const TensorNames names(bundle);
  Selection selection;
  selection.header.metadata = {{"format", "pt"}};  // what libraries that load weights ask for
  for (const auto& [key, entry] : bundle.entries()) {
    const std::string name = names.name(key);
    if (key == internal::kObjectGraphKey || !is_wanted(name, options.globs)) continue;
    if (!internal::safetensors_can_hold(entry.type)) {
      out << "left out " << printable(quoted(name)) << ": " << internal::type_name(entry.type)
          << " is no type of safetensors files\n";
      continue;
    }
    if (!selection.keys.emplace(name, key).second) {
      throw DataLossError(str("checkpoint '", bundle.prefix(), "': two tensors are named ",
                              quoted(name), " for people"));
    }
    selection.header.tensors[name] = {.type = entry.type, .shape = entry.shape};
  }
  if (selection.keys.empty()) {
    throw NotFoundError(str("checkpoint '", bundle.prefix(), "' has no tensors to export",
                            options.globs.empty() ? "" : " by the names given"));
  }
  internal::place_tensors(selection.header);
  return selection;
}

}  // namespace

int export_checkpoint(FileSystem& files, const ExportOptions& options, std::ostream& out) {
  const BundleReader bundle(files, require_checkpoint(files, options.path));
  const Selection selection = select(bundle, options, out);
  internal::SafetensorsWriter file(files, options.output, selection.header);
  for (const auto* tensor : internal::in_file_order(selection.header)) {
    const auto& [name, entry] = *tensor;
    std::string bytes(entry.end - entry.begin, '\0');
    bundle.read(selection.keys.at(name), bytes.data());
    file.append(bytes);
  }
  file.finish();
  out << "wrote " << printable(quoted(options.output)) << ": "
      << counted(selection.keys.size(), "tensor") << ", "
      << counted(internal::data_bytes(selection.header), "byte") << '\n';
  return kExitOk;
}

}  // namespace cohort::tools
