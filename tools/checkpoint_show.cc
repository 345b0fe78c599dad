#include <algorithm>
#include <set>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/train/bundle/bundle_reader.h"
#include "cohort/train/objects/object_graph.h"
#include "tools/checkpoint_commands.h"
#include "tools/checkpoint_paths.h"
#include "tools/checkpoint_tensors.h"
#include "tools/elements.h"
#include "tools/object_tree.h"
#include "tools/printable.h"

namespace cohort::tools {
namespace {

using internal::BundleEntry;
using internal::BundleReader;
using internal::BundleType;
using internal::quoted;
using internal::str;

constexpr size_t kLongestString = 1000;
// Tensors of one value: a table has two.
constexpr size_t kMostOfValue = 8;

void show_values(const BundleReader& bundle, const ShowOptions& options, std::ostream& out) {
  const TensorNames names(bundle);
  const std::string key = names.find(options.key);
  const BundleEntry& entry = bundle.entry(key);
  const PrintArrayOptions form = {.shape = entry.shape, .max_elements = options.max_elements};
  const std::string head = printable(names.name(key)) + ": " + describe(entry) + "\n";
  if (entry.type == BundleType::kString) {
    const std::vector<std::string> strings = bundle.read_strings(key);
    out << head;
    print_array(
        form,
        [&](uint64_t i) {
          const std::string_view text = strings[i];
          std::string shown = printable(quoted(text.substr(0, kLongestString), '"'));
          if (text.size() <= kLongestString) return shown;
          return str(shown, "... (", counted(text.size(), "byte"), ")");
        },
        out);
  } else {
    if (internal::size_of(entry.type) == 0) {
      throw UnimplementedError(str("tensor ", quoted(key), " is of ",
                                   internal::type_name(entry.type), ", which cannot be shown"));
    }
    std::string bytes(tensor_bytes(entry), '\0');
    bundle.read(key, bytes.data());
    out << head;
    print_array(
        form, [&](uint64_t i) { return element_text(entry.type, bytes.data(), i); }, out);
  }
  out << '\n';
}

void show_graph(const BundleReader& bundle, std::ostream& out) {
  const TensorNames names(bundle);
  std::set<std::string, std::less<>> shown = {internal::kObjectGraphKey};
  if (bundle.contains(internal::kObjectGraphKey)) {
    const std::vector<std::string> stored = bundle.read_strings(internal::kObjectGraphKey);
    const internal::ObjectGraph graph = internal::parse_object_graph(
        stored.empty() ? "" : stored[0], internal::bundle_index_path(bundle.prefix()));
    const auto describe_value = [&](const std::string& key) {
      std::string text;
      for (const Tensor* tensor : tensors_of(bundle, key, kMostOfValue)) {
        shown.insert(tensor->first);
        const std::string_view suffix = std::string_view(tensor->first).substr(key.size());
        text += str(text.empty() ? "" : ", ", printable(suffix, kLongestString),
                    suffix.empty() ? "" : " ", describe(tensor->second));
      }
      return text.empty() ? "missing from the checkpoint" : text;
    };
    print_object_tree(graph, describe_value, out);
  } else {
    out << "no graph of objects; the tensors are:\n";
  }
  const bool left = shown.size() > 1 && bundle.entries().size() > shown.size();
  if (left) out << "tensors of no object:\n";
  for (const auto& [key, entry] : bundle.entries()) {
    if (shown.count(key) > 0) continue;
    out << (left ? "  " : "") << printable(names.name(key)) << ": " << describe(entry) << '\n';
  }
}

}  // namespace

int show_checkpoint(internal::FileSystem& files, const ShowOptions& options, std::ostream& out) {
  const BundleReader bundle(files, require_checkpoint(files, options.path));
  if (options.key.empty()) {
    show_graph(bundle, out);
  } else {
    show_values(bundle, options, out);
  }
  return kExitOk;
}

}  // namespace cohort::tools
