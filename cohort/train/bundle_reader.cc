#include "cohort/train/bundle_reader.h"

#include <algorithm>

#include "cohort/core/crc32c.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/core/varint.h"
#include "cohort/train/copy_box.h"
#include "cohort/train/table.h"

namespace cohort::internal {
namespace {

// Data is read and its checksum taken in pieces that stay in the cache.
constexpr size_t kPieceBytes = size_t{1} << 20;

std::string read_whole(const ReadableFile& file) {
  std::string bytes(file.size(), '\0');
  file.read(0, bytes.data(), bytes.size());
  return bytes;
}

}  // namespace

BundleReader::BundleReader(FileSystem& files, std::string prefix)
    : files_(files), prefix_(std::move(prefix)) {
  const std::string path = bundle_index_path(prefix_);
  const std::string bytes = read_whole(*files_.open(path));
  const std::vector<TableEntry> table = parse_table(bytes, path);
  if (table.empty() || !table[0].key.empty()) {
    throw DataLossError(str("'", path, "': has no header; is it a checkpoint's index?"));
  }
  num_shards_ = parse_bundle_header(table[0].value, path);
  size_t slices_left = table.size();
  for (size_t i = 1; i < table.size(); ++i) {
    const auto& [key, value] = table[i];
    const std::string what = str("'", path, "': entry ", quoted(key));
    BundleEntry entry = parse_bundle_entry(value, key, what, slices_left);
    slices_left -= entry.slices.size();
    check_entry(key, entry);
    (key[0] == '\0' ? parts_ : entries_).emplace(key, std::move(entry));
  }
  for (const auto& [name, entry] : entries_) check_slices(name, entry);
}

std::string BundleReader::place(const BundleEntry& entry) const {
  return str("'", bundle_data_path(prefix_, entry.shard, num_shards_), "', bytes ", entry.offset,
             " to ", entry.offset + entry.size);
}

void BundleReader::fail(std::string_view name, const BundleEntry& entry,
                        const std::string& problem) const {
  throw DataLossError(str(place(entry), ": tensor ", quoted(name), ": ", problem));
}

// The size is that of the shape, and the bytes lie in the file.
void BundleReader::check_entry(const std::string& name, const BundleEntry& entry) {
  const std::string what = str("'", bundle_index_path(prefix_), "': entry ", quoted(name));
  if (!entry.slices.empty()) return;
  const uint64_t elements = num_elements(entry.shape, what);
  const uint64_t item = size_of(entry.type);
  const bool fits = item == 0 ? elements <= entry.size
                              : entry.size % item == 0 && entry.size / item == elements;
  if (!fits) {
    throw DataLossError(str(what, ": ", entry.size, " bytes cannot be ", elements, " elements of ",
                            type_name(entry.type)));
  }
  if (entry.shard >= num_shards_) {
    throw DataLossError(
        str(what, ": is in data file ", entry.shard, " of only ", num_shards_, " files"));
  }
  auto& file = shards_[entry.shard];
  if (file == nullptr) file = files_.open(bundle_data_path(prefix_, entry.shard, num_shards_));
  if (entry.offset > file->size() || entry.size > file->size() - entry.offset) {
    fail(name, entry, str("lies beyond the end of the file, which has ", file->size(), " bytes"));
  }
}

// The parts are there, and together they are as large as the whole.
void BundleReader::check_slices(const std::string& name, const BundleEntry& entry) const {
  if (entry.slices.empty()) return;
  const std::string what = str("'", bundle_index_path(prefix_), "': entry ", quoted(name));
  if (size_of(entry.type) == 0) throw DataLossError(what + ": strings in slices");
  uint64_t covered = 0;
  const uint64_t elements = num_elements(entry.shape, what);
  for (const BundleEntry::Slice& slice : entry.slices) {
    const auto found = parts_.find(slice.key);
    if (found == parts_.end()) throw DataLossError(what + ": one of its slices is missing");
    const BundleEntry& stored = found->second;
    if (stored.shape != slice.slice.length || stored.type != entry.type ||
        !stored.slices.empty()) {
      throw DataLossError(what + ": one of its slices is of another shape or type");
    }
    covered += num_elements(stored.shape, what);
    if (covered > elements) break;
  }
  if (covered != elements) {
    throw DataLossError(str(what, ": its slices do not make up its ", elements, " elements"));
  }
}

const BundleEntry& BundleReader::entry(std::string_view name) const {
  const auto found = entries_.find(name);
  if (found != entries_.end()) return found->second;
  throw NotFoundError(str("checkpoint '", prefix_, "' has no tensor ", quoted(name)));
}

const BundleEntry& BundleReader::part(const BundleEntry::Slice& slice) const {
  return parts_.find(slice.key)->second;
}

const ReadableFile& BundleReader::file_of(const BundleEntry& entry) const {
  return *shards_.find(entry.shard)->second;
}

uint64_t BundleReader::data_bytes() const {
  uint64_t bytes = 0;
  for (const auto& [shard, file] : shards_) bytes += file->size();
  return bytes;
}

void BundleReader::read_checked(std::string_view name, const BundleEntry& entry, void* out) const {
  const ReadableFile& file = file_of(entry);
  auto* bytes = static_cast<char*>(out);
  uint32_t crc = 0;
  for (uint64_t done = 0; done < entry.size;) {
    const size_t piece = std::min<uint64_t>(kPieceBytes, entry.size - done);
    file.read(entry.offset + done, bytes + done, piece);
    crc = crc32c(bytes + done, piece, crc);
    done += piece;
  }
  if (mask_crc(crc) != entry.crc) fail(name, entry, "its checksum does not hold");
}

void BundleReader::verify_stored(std::string_view name, const BundleEntry& entry) const {
  if (size_of(entry.type) == 0 && entry.type != BundleType::kString) {
    // The layout of other types is TensorFlow's secret: their bytes cannot be checked.
    return;
  }
  if (entry.type == BundleType::kString) return parse_strings(name, entry, nullptr);
  const ReadableFile& file = file_of(entry);
  std::string piece(std::min<uint64_t>(kPieceBytes, entry.size), '\0');
  uint32_t crc = 0;
  for (uint64_t done = 0; done < entry.size; done += piece.size()) {
    piece.resize(std::min<uint64_t>(kPieceBytes, entry.size - done));
    file.read(entry.offset + done, piece.data(), piece.size());
    crc = crc32c(piece, crc);
  }
  if (mask_crc(crc) != entry.crc) fail(name, entry, "its checksum does not hold");
}

void BundleReader::verify(std::string_view name) const {
  const BundleEntry& whole = entry(name);
  if (whole.slices.empty()) return verify_stored(name, whole);
  for (const BundleEntry::Slice& slice : whole.slices) verify_stored(name, part(slice));
}

void BundleReader::read(std::string_view name, void* out) const {
  const BundleEntry& whole = entry(name);
  if (!whole.slices.empty()) {
    const train::TensorSlice all = {std::vector<int64_t>(whole.shape.size(), 0), whole.shape};
    return read_slice(name, all, out);
  }
  if (size_of(whole.type) == 0) {
    throw InvalidArgumentError(str("tensor ", quoted(name), " of '", prefix_, "' is of type ",
                                   type_name(whole.type), ", which has no numbers"));
  }
  read_checked(name, whole, out);
}

void BundleReader::read_slice(std::string_view name, const train::TensorSlice& slice,
                              void* out) const {
  const BundleEntry& whole = entry(name);
  const uint64_t item = size_of(whole.type);
  bool fits = item > 0 && slice.start.size() == whole.shape.size() &&
              slice.length.size() == whole.shape.size();
  for (size_t d = 0; fits && d < whole.shape.size(); ++d) {
    fits = slice.start[d] >= 0 && slice.length[d] >= 0 &&
           slice.start[d] <= whole.shape[d] - slice.length[d];
  }
  if (!fits) {
    throw InvalidArgumentError(str("tensor ", quoted(name), " of '", prefix_,
                                   "' does not contain the slice that is asked for"));
  }
  const auto copy_part = [&](const BundleEntry& stored, const train::TensorSlice& place) {
    std::string bytes(stored.size, '\0');
    read_checked(name, stored, bytes.data());
    return copy_box({.from = bytes.data(), .from_slice = place, .to = out, .to_slice = slice,
                     .item_bytes = item});
  };
  if (whole.slices.empty()) {
    copy_part(whole, {std::vector<int64_t>(whole.shape.size(), 0), whole.shape});
    return;
  }
  uint64_t covered = 0;
  for (const BundleEntry::Slice& stored : whole.slices) {
    if (!boxes_meet(stored.slice, slice)) continue;
    covered += copy_part(part(stored), stored.slice);
  }
  if (covered != num_elements(slice.length, "slice")) {
    throw DataLossError(str("'", bundle_index_path(prefix_), "': tensor ", quoted(name),
                            ": its slices overlap and leave gaps"));
  }
}

// Strings are stored as their lengths, a checksum of the lengths, and their bytes. The entry's
// checksum is over the lengths as numbers of four (from 2^32 on eight) bytes, then the rest.
void BundleReader::parse_strings(std::string_view name, const BundleEntry& entry,
                                 std::vector<std::string>* out) const {
  std::string bytes(entry.size, '\0');
  file_of(entry).read(entry.offset, bytes.data(), bytes.size());
  std::string_view left = bytes;
  const uint64_t count = num_elements(entry.shape, "strings");
  uint64_t total = 0;
  uint32_t crc = 0;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t length = 0;
    try {
      length = take_varint(left);
    } catch (const DataLossError& error) {
      fail(name, entry, str("string ", i, " has ", error.what()));
    }
    if (length > entry.size - total) fail(name, entry, str("string ", i, " is too long"));
    total += length;
    crc = crc32c(&length, length <= UINT32_MAX ? 4 : 8, crc);
  }
  if (left.size() != 4 + total) fail(name, entry, "its strings are not as long as it is");
  uint32_t stored = 0;
  for (size_t i = 4; i-- > 0;) stored = stored << 8 | static_cast<unsigned char>(left[i]);
  if (mask_crc(crc) != stored) fail(name, entry, "the checksum of its lengths does not hold");
  if (mask_crc(crc32c(left, crc)) != entry.crc) fail(name, entry, "its checksum does not hold");
  if (out == nullptr) return;
  left.remove_prefix(4);
  std::string_view lengths = bytes;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t length = take_varint(lengths);
    out->emplace_back(left.substr(0, length));
    left.remove_prefix(length);
  }
}

std::vector<std::string> BundleReader::read_strings(std::string_view name) const {
  const BundleEntry& strings = entry(name);
  if (strings.type != BundleType::kString) {
    throw InvalidArgumentError(str("tensor ", quoted(name), " of '", prefix_, "' is of type ",
                                   type_name(strings.type), "; it has no strings"));
  }
  std::vector<std::string> result;
  parse_strings(name, strings, &result);
  return result;
}

}  // namespace cohort::internal
