#include "cohort/train/saving/group_contribution.h"

#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "cohort/core/bytes/fields.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/train/bundle/ordered_code.h"
#include "cohort/train/bundle/value_bytes.h"
#include "cohort/train/objects/object_graph.h"
#include "cohort/train/objects/object_graph_merge.h"

namespace cohort::internal {
namespace {

constexpr const char* kContribution = "what a member of the group saves";

// A part as its fields, whose texts lie elsewhere. It has either strings or the bytes of a tensor.
struct PartFields {
  std::string_view key;
  BundleType type = BundleType::kString;
  std::vector<int64_t> shape = {};
  std::string_view bytes = {};
  std::vector<std::string_view> strings = {};
  train::TensorSlice slice = {};  // of a slice, as is `full_shape`
  std::vector<int64_t> full_shape = {};
};
void fields(auto& f, PartFields& part) {
  f(1, part.key);
  f(2, part.type, BundleType::kUint64);
  f(3, part.shape);
  f(4, part.bytes);
  f(5, part.strings);
  f(6, part.slice.start);
  f(7, part.slice.length);
  f(8, part.full_shape);
}

// The graph comes only with values that need it.
struct Contribution {
  std::string_view graph;
  std::vector<PartFields> parts = {};
};
void fields(auto& f, Contribution& contribution) {
  f(1, contribution.graph);
  f(2, contribution.parts);
}

struct ManifestEntry {
  std::string identity;
  std::string description;
  bool carried = false;
};
void fields(auto& f, ManifestEntry& entry) {
  f(1, entry.identity);
  f(2, entry.description);
  f(3, entry.carried);
}

struct Manifest {
  std::vector<ManifestEntry> entries;
};
void fields(auto& f, Manifest& manifest) { f(1, manifest.entries); }

// Parts of one partitioned value share their key.
std::string identity_of(const SavedPart& part) {
  return part.slice ? slice_key(part.key, *part.slice) : part.key;
}

// "float32 [2, 3]"; of a slice the whole's.
std::string describe_part(const SavedPart& part) {
  if (!part.value.is_tensor()) return "strings";
  const Tensor& tensor = part.value.tensor();
  std::string text = type_name(bundle_type(tensor.scalar_type())) + " [";
  const at::IntArrayRef shape = part.slice ? at::IntArrayRef(part.full_shape) : tensor.sizes();
  for (size_t d = 0; d < shape.size(); ++d) text += str(d == 0 ? "" : ", ", shape[d]);
  return text + "]";
}

PartFields fields_of(const SavedPart& part) {
  PartFields out{.key = part.key};
  if (part.value.is_tensor()) {
    const Tensor& tensor = part.value.tensor();
    out.type = bundle_type(tensor.scalar_type());
    out.shape = tensor.sizes().vec();
    out.bytes = bytes_of(tensor);
  } else {
    const StringTensor& strings = part.value.strings();
    out.shape.assign(strings.sizes().begin(), strings.sizes().end());
    for (int64_t i = 0; i < strings.numel(); ++i) out.strings.push_back(strings[i]);
  }
  if (part.slice) {
    out.slice = *part.slice;
    out.full_shape = part.full_shape;
  }
  return out;
}

[[noreturn]] void fail(const char* problem) {
  throw DataLossError(str(kContribution, ": ", problem));
}

Leaf value_of(const PartFields& in) {
  const uint64_t elements = num_elements(in.shape, kContribution);
  if (in.type == BundleType::kString) {
    if (in.strings.size() != elements) fail("strings that do not fit their shape");
    return Leaf(StringTensor({in.strings.begin(), in.strings.end()}, in.shape));
  }
  const DType dtype = dtype_of(in.type);
  if (dtype == DType::Undefined) fail("a value of a dtype that there is not");
  const uint64_t item = size_of(in.type);
  if (in.bytes.size() % item != 0 || in.bytes.size() / item != elements) {
    fail("a value whose bytes do not fit its shape");
  }
  Tensor value = empty_for_reading(in.shape, dtype);
  if (!in.bytes.empty()) std::memcpy(value.data_ptr(), in.bytes.data(), in.bytes.size());
  return Leaf(value);
}

SavedPart part_of(const PartFields& in) {
  SavedPart part{.key = std::string(in.key), .value = value_of(in)};
  const size_t dimensions = in.full_shape.size();
  if (in.slice.start.size() != dimensions || in.slice.length.size() != dimensions) {
    fail("a slice of other dimensions than its whole");
  }
  if (dimensions == 0) return part;
  part.slice = in.slice;
  part.full_shape = in.full_shape;
  return part;
}

}  // namespace

std::string manifest_of(const Snapshot& writers) {
  Manifest manifest;
  for (const SavedPart& part : writers.parts()) {
    manifest.entries.push_back({identity_of(part), describe_part(part), part.carried});
  }
  return encode_fields(manifest);
}

std::string contribution_to(std::string_view manifest, const Snapshot& own) {
  std::map<std::string, ManifestEntry, std::less<>> entries;
  constexpr char kManifest[] = "the list of what the group's writer saves";
  for (ManifestEntry& entry : decode_fields<Manifest>(manifest, kManifest).entries) {
    entries.emplace(entry.identity, std::move(entry));
  }
  Contribution out{.graph = own.graph()};
  for (const SavedPart& part : own.parts()) {
    const auto known = entries.find(identity_of(part));
    if (known != entries.end() && known->second.description != describe_part(part)) {
      throw InvalidArgumentError(str("checkpoint value ", quoted(readable_key(part.key)), " is ",
                                     describe_part(part), " here, but ", known->second.description,
                                     " at the process that writes; all must run one program"));
    }
    if (known != entries.end() && (!known->second.carried || part.carried)) continue;
    out.parts.push_back(fields_of(part));
  }
  return out.parts.empty() ? "" : encode_fields(out);
}

void add_contribution(Snapshot& writers, std::string_view contribution) {
  if (contribution.empty()) return;
  std::map<std::string, size_t> known;
  for (size_t i = 0; i < writers.parts().size(); ++i) {
    known.emplace(identity_of(writers.parts()[i]), i);
  }
  const auto in = decode_fields<Contribution>(contribution, kContribution);
  ObjectGraph graph = parse_object_graph(writers.graph(), kContribution);
  const auto keys = merge_object_graph(graph, parse_object_graph(in.graph, kContribution));
  for (const PartFields& fields : in.parts) {
    SavedPart part = part_of(fields);
    const auto key = keys.find(part.key);
    if (key == keys.end()) {
      throw DataLossError(str(kContribution, ": the value ", quoted(part.key), " of no object"));
    }
    part.key = key->second;
    const auto place = known.find(identity_of(part));
    if (place == known.end()) {
      known.emplace(identity_of(part), writers.parts().size());
      writers.add(std::move(part));
    } else if (writers.parts()[place->second].carried && !part.carried) {
      writers.replace(place->second, std::move(part));
    }
  }
  writers.set_graph(format_object_graph(graph));
}

}  // namespace cohort::internal
