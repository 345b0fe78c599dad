#include "cohort/train/saving/group_contribution.h"

#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "cohort/core/bytes/wire.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/train/bundle/ordered_code.h"
#include "cohort/train/bundle/value_bytes.h"
#include "cohort/train/objects/object_graph.h"
#include "cohort/train/objects/object_graph_merge.h"

namespace cohort::internal {
namespace {

constexpr const char* kContribution = "what a member of the group saves";

// Fields of a part.
enum PartField : uint32_t {
  kKey = 1,
  kType = 2,
  kShape = 3,
  kBytes = 4,
  kString = 5,
  kSliceStart = 6,
  kSliceLength = 7,
  kFullShape = 8,
};

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

struct ManifestEntry {
  std::string description;
  bool carried = false;
};

std::map<std::string, ManifestEntry, std::less<>> parse_manifest(std::string_view bytes) {
  std::map<std::string, ManifestEntry, std::less<>> entries;
  WireReader reader(bytes, "the list of what the group's writer saves");
  while (reader.next()) {
    WireReader fields(reader.bytes(), "the list of what the group's writer saves");
    std::string identity;
    ManifestEntry entry;
    while (fields.next()) {
      if (fields.field() == 1) identity = fields.bytes();
      if (fields.field() == 2) entry.description = fields.bytes();
      if (fields.field() == 3) entry.carried = fields.varint() != 0;
    }
    entries.emplace(std::move(identity), std::move(entry));
  }
  return entries;
}

void write_numbers(WireWriter& out, PartField field, at::IntArrayRef numbers) {
  for (const int64_t number : numbers) out.varint(field, static_cast<uint64_t>(number));
}

std::string format_part(const SavedPart& part) {
  WireWriter out;
  out.bytes(kKey, part.key);
  if (part.value.is_tensor()) {
    const Tensor& tensor = part.value.tensor();
    out.varint(kType, static_cast<uint64_t>(bundle_type(tensor.scalar_type())));
    write_numbers(out, kShape, tensor.sizes());
    out.bytes(kBytes, bytes_of(tensor));
  } else {
    const StringTensor& strings = part.value.strings();
    out.varint(kType, static_cast<uint64_t>(BundleType::kString));
    write_numbers(out, kShape, strings.sizes());
    for (int64_t i = 0; i < strings.numel(); ++i) out.bytes(kString, strings[i]);
  }
  if (part.slice) {
    write_numbers(out, kSliceStart, part.slice->start);
    write_numbers(out, kSliceLength, part.slice->length);
    write_numbers(out, kFullShape, part.full_shape);
  }
  return out.str();
}

Leaf make_value(const WireReader& reader, BundleType type, const std::vector<int64_t>& shape,
                std::string_view bytes, std::vector<std::string> strings) {
  const uint64_t elements = num_elements(shape, kContribution);
  if (type == BundleType::kString) {
    if (strings.size() != elements) reader.fail("strings that do not fit their shape");
    return Leaf(StringTensor(std::move(strings), shape));
  }
  const DType dtype = dtype_of(type);
  if (dtype == DType::Undefined) reader.fail("a value of a dtype that there is not");
  const uint64_t item = size_of(type);
  if (bytes.size() % item != 0 || bytes.size() / item != elements) {
    reader.fail("a value whose bytes do not fit its shape");
  }
  Tensor value = empty_for_reading(shape, dtype);
  if (!bytes.empty()) std::memcpy(value.data_ptr(), bytes.data(), bytes.size());
  return Leaf(value);
}

SavedPart parse_part(std::string_view message) {
  SavedPart part{.key = "", .value = Leaf(StringTensor())};
  auto type = BundleType::kString;
  std::vector<int64_t> shape;
  std::string_view bytes;
  std::vector<std::string> strings;
  train::TensorSlice slice;
  WireReader reader(message, kContribution);
  const auto number = [&] { return static_cast<int64_t>(reader.varint()); };
  while (reader.next()) {
    switch (reader.field()) {
      case kKey:
        part.key = reader.bytes();
        break;
      case kType:
        type = static_cast<BundleType>(reader.varint());
        break;
      case kShape:
        shape.push_back(number());
        break;
      case kBytes:
        bytes = reader.bytes();
        break;
      case kString:
        strings.emplace_back(reader.bytes());
        break;
      case kSliceStart:
        slice.start.push_back(number());
        break;
      case kSliceLength:
        slice.length.push_back(number());
        break;
      case kFullShape:
        part.full_shape.push_back(number());
        break;
      default:
        break;
    }
  }
  part.value = make_value(reader, type, shape, bytes, std::move(strings));
  if (slice.start.size() != part.full_shape.size() ||
      slice.length.size() != part.full_shape.size()) {
    reader.fail("a slice of other dimensions than its whole");
  }
  if (!part.full_shape.empty()) part.slice = std::move(slice);
  return part;
}

}  // namespace

std::string manifest_of(const Snapshot& writers) {
  WireWriter manifest;
  for (const SavedPart& part : writers.parts()) {
    WireWriter entry;
    entry.bytes(1, identity_of(part)).bytes(2, describe_part(part));
    if (part.carried) entry.varint(3, 1);
    manifest.bytes(1, entry.str());
  }
  return manifest.str();
}

std::string contribution_to(std::string_view manifest, const Snapshot& own) {
  const auto entries = parse_manifest(manifest);
  WireWriter out;
  for (const SavedPart& part : own.parts()) {
    const auto known = entries.find(identity_of(part));
    if (known != entries.end() && known->second.description != describe_part(part)) {
      throw InvalidArgumentError(str("checkpoint value ", quoted(readable_key(part.key)), " is ",
                                     describe_part(part), " here, but ", known->second.description,
                                     " at the process that writes; all must run one program"));
    }
    if (known != entries.end() && (!known->second.carried || part.carried)) continue;
    // The graph comes first, and only with values that need it.
    if (out.str().empty()) out.bytes(1, own.graph());
    out.bytes(2, format_part(part));
  }
  return out.str();
}

void add_contribution(Snapshot& writers, std::string_view contribution) {
  if (contribution.empty()) return;
  std::map<std::string, size_t> known;
  for (size_t i = 0; i < writers.parts().size(); ++i) {
    known.emplace(identity_of(writers.parts()[i]), i);
  }
  ObjectGraph graph = parse_object_graph(writers.graph(), kContribution);
  std::map<std::string, std::string> keys;
  WireReader reader(contribution, kContribution);
  while (reader.next()) {
    if (reader.field() == 1) {
      keys = merge_object_graph(graph, parse_object_graph(reader.bytes(), kContribution));
      continue;
    }
    SavedPart part = parse_part(reader.bytes());
    const auto key = keys.find(part.key);
    if (key == keys.end()) reader.fail(str("the value ", quoted(part.key), " of no object"));
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
