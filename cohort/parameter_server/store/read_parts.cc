#include "cohort/parameter_server/store/read_parts.h"

#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/train/bundle/bundle_reader.h"
#include "cohort/train/bundle/value_bytes.h"
#include "cohort/train/objects/restore_source.h"
#include "cohort/train/objects/saved_graph.h"

namespace cohort::internal {
namespace {

// Missing: it is another one, or not all of its files are here.
std::optional<BundleReader> open_checkpoint(FileSystem& files, const ReadPartsRequest& request) {
  try {
    if (bundle_index_crc(files, request.prefix) != request.index_crc) return std::nullopt;
    std::optional<BundleReader> bundle(std::in_place, files, request.prefix);
    if (bundle->index_crc() != request.index_crc) return std::nullopt;  // rewritten just now
    // So that it has the tensors that the coordinator knows.
    if (bundle->contains(kObjectGraphKey)) read_saved_graph(*bundle);
    return bundle;
  } catch (const NotFoundError&) {
    return std::nullopt;
  }
}

void check_fits(const BundleReader& bundle, const ReadPartsRequest::Part& part,
                const Tensor& value) {
  const BundleEntry& entry = bundle.entry(part.name);
  const std::vector<int64_t>& shape = part.slice ? part.slice->length : entry.shape;
  if (at::IntArrayRef(shape) == value.sizes() && dtype_of(entry.type) == value.scalar_type()) {
    return;
  }
  throw InvalidArgumentError(str("checkpoint '", bundle.prefix(), "': of ", quoted(part.name), " ",
                                 type_name(entry.type), " ", shape_str(shape),
                                 " were to become a shard that is ",
                                 dtype_name(value.scalar_type()), " ", shape_str(value.sizes())));
}

// For a shard that is not there yet, of the form that the part has; undefined: it is there.
Tensor empty_for_new_shard(const BundleReader& bundle, const VariableStore& store,
                           const ReadPartsRequest::Part& part) {
  const BundleEntry& entry = bundle.entry(part.name);
  const DType dtype = dtype_of(entry.type);
  if (dtype == DType::Undefined) {
    throw InvalidArgumentError(str("checkpoint '", bundle.prefix(), "': ", quoted(part.name),
                                   " is ", type_name(entry.type), ", which no shard can be"));
  }
  if (part.slice) bundle.check_slice(part.name, *part.slice);
  const std::vector<int64_t>& shape = part.slice ? part.slice->length : entry.shape;
  if (store.has(part.key, part.new_shard, shape, dtype)) return {};
  return empty_for_reading(shape, dtype);
}

}  // namespace

std::optional<std::vector<VariableStore::NewValue>> read_parts(FileSystem& files,
                                                               const VariableStore& store,
                                                               const ReadPartsRequest& request) {
  if (!request.prefix.starts_with('/')) {
    throw InvalidArgumentError(str("a ps task was asked to read checkpoint ",
                                   quoted(request.prefix), ", which is no absolute path"));
  }
  const std::optional<BundleReader> bundle = open_checkpoint(files, request);
  if (!bundle) return std::nullopt;
  std::vector<VariableStore::NewValue> values;
  for (const ReadPartsRequest::Part& part : request.parts) {
    Tensor value = part.new_shard.empty() ? store.empty_like(part.key)
                                          : empty_for_new_shard(*bundle, store, part);
    if (!value.defined()) continue;
    check_fits(*bundle, part, value);
    if (part.slice) {
      bundle->read_slice(part.name, *part.slice, value.data_ptr());
    } else {
      bundle->read(part.name, value.data_ptr());
    }
    check_booleans(*bundle, part.name, value);
    values.push_back({part.key, std::move(value), part.new_shard});
  }
  return values;
}

}  // namespace cohort::internal
