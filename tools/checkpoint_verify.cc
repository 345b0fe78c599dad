#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/train/bundle/bundle_reader.h"
#include "cohort/train/objects/object_graph.h"
#include "tools/checkpoint_commands.h"
#include "tools/checkpoint_paths.h"
#include "tools/checkpoint_tensors.h"
#include "tools/printable.h"

namespace cohort::tools {
namespace {

using internal::BundleReader;
using internal::BundleType;
using internal::FileSystem;
using internal::quoted;
using internal::str;

struct Findings {
  std::vector<std::string> damage;
  size_t tensors = 0;
  uint64_t bytes = 0;
  size_t unchecked = 0;  // tensors of types whose checksum is TensorFlow's secret
};

template <class Check>
void note_damage(Findings& findings, Check&& check) {
  try {
    check();
  } catch (const Error& error) {
    findings.damage.emplace_back(error.what());
  }
}

// Every value that the graph refers to is there.
void verify_graph(const BundleReader& bundle, Findings& findings) {
  if (!bundle.contains(internal::kObjectGraphKey)) return;
  const std::vector<std::string> stored = bundle.read_strings(internal::kObjectGraphKey);
  const std::string file = internal::bundle_index_path(bundle.prefix());
  const internal::ObjectGraph graph =
      internal::parse_object_graph(stored.empty() ? "" : stored[0], file);
  for (const auto& node : graph.nodes) {
    for (const auto& attribute : node.attributes) {
      if (!tensors_of(bundle, attribute.checkpoint_key, 1).empty()) continue;
      findings.damage.push_back(str("'", file, "': the graph of objects refers to tensor ",
                                    quoted(attribute.checkpoint_key), ", which is missing"));
    }
  }
}

Findings verify(FileSystem& files, const std::string& prefix) {
  Findings findings;
  note_damage(findings, [&] {
    const BundleReader bundle(files, prefix);
    for (const auto& [key, entry] : bundle.entries()) {
      ++findings.tensors;
      findings.bytes += tensor_bytes(entry);
      if (internal::size_of(entry.type) == 0 && entry.type != BundleType::kString) {
        ++findings.unchecked;
      }
      // The graph is read below.
      if (key == internal::kObjectGraphKey && entry.type == BundleType::kString) continue;
      note_damage(findings, [&, &name = key] { bundle.verify(name); });
    }
    note_damage(findings, [&] { verify_graph(bundle, findings); });
  });
  return findings;
}

void report(const std::string& prefix, const Findings& findings, std::ostream& out) {
  const std::string name = printable(quoted(prefix));
  if (!findings.damage.empty()) {
    out << "DAMAGED " << name << ": " << counted(findings.damage.size(), "problem") << '\n';
    for (const std::string& problem : findings.damage) out << "  " << printable(problem) << '\n';
    return;
  }
  out << "OK " << name << ": " << counted(findings.tensors, "tensor") << ", "
      << counted(findings.bytes, "byte");
  if (findings.unchecked > 0) {
    out << "; " << findings.unchecked << " of them of types that cannot be checked";
  }
  out << '\n';
}

}  // namespace

int verify_checkpoints(FileSystem& files, const VerifyOptions& options, std::ostream& out) {
  std::vector<std::string> prefixes;
  if (auto prefix = checkpoint_prefix(files, options.path)) {
    prefixes.push_back(*std::move(prefix));
  } else {
    prefixes = checkpoints_in(files, options.path);
  }
  if (prefixes.empty()) throw NotFoundError(str("no checkpoints in ", quoted(options.path)));
  bool damaged = false;
  for (const std::string& prefix : prefixes) {
    const Findings findings = verify(files, prefix);
    damaged |= !findings.damage.empty();
    report(prefix, findings, out);
  }
  return damaged ? kExitBadData : kExitOk;
}

}  // namespace cohort::tools
