#include "cohort/train/bundle/bundle_reader.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "cohort/core/bytes/varint.h"
#include "cohort/core/error.h"
#include "cohort/core/files/crc32c.h"
#include "cohort/core/text.h"
#include "cohort/train/bundle/box_cover.h"
#include "cohort/train/bundle/copy_box.h"
#include "cohort/train/bundle/missing_checkpoint.h"
#include "cohort/train/bundle/table.h"

namespace cohort::internal {
namespace {

// Messages quote keys, so that a key of any length would take a multiple of it.
constexpr size_t kMostKeyBytes = size_t{256} << 10;
constexpr const char* kWrongChecksum = "its checksum does not hold";

// Copies in pieces that are still in the cache for their checksum.
uint32_t copy_with_crc(std::string_view bytes, char* out, uint32_t crc) {
  constexpr size_t kPieceBytes = size_t{128} << 10;
  for (size_t done = 0; done < bytes.size(); done += kPieceBytes) {
    const std::string_view piece = bytes.substr(done, kPieceBytes);
    std::memcpy(out + done, piece.data(), piece.size());
    crc = crc32c(piece, crc);
  }
  return crc;
}

// The index of millions of tensors is smaller. A sparse file, which costs an attacker nothing, may
// have any size.
constexpr uint64_t kMostIndexBytes = uint64_t{1} << 30;

std::string read_index(const ReadableFile& file, const std::string& path) {
  if (file.size() > kMostIndexBytes) {
    throw DataLossError(str("'", path, "': has ", file.size(), " bytes, no index has"));
  }
  std::string bytes(file.size(), '\0');
  file.read(0, bytes.data(), bytes.size());
  return bytes;
}

}  // namespace

BundleReader::BundleReader(FileSystem& files, std::string prefix)
    : files_(files), prefix_(std::move(prefix)) {
  constexpr int kMostAttempts = 10;
  for (int attempt = 1; !open_all(); ++attempt) {
    if (attempt == kMostAttempts) fail_rewritten();
  }
}

// False: the checkpoint was rewritten meanwhile. A writer never touches data files that the present
// index names (BundleWriter), so that those are of one save which were opened while one index was
// there.
bool BundleReader::open_all() {
  entries_.clear();
  parts_.clear();
  shards_.clear();
  const std::string path = bundle_index_path(prefix_);
  const std::string bytes = read_index(*open_index(path), path);
  index_crc_ = crc32c(bytes);
  try {
    take_index(bytes, path);
  } catch (const Error&) {
    if (is_rewritten()) return false;
    throw;
  }
  return !is_rewritten();
}

std::unique_ptr<ReadableFile> BundleReader::open_index(const std::string& path) const {
  try {
    return files_.open(path);
  } catch (const NotFoundError&) {
    throw NotFoundError(describe_missing_checkpoint(files_, prefix_));
  }
}

// Whether there is another index now. One that was removed, or cannot be read, is no other one.
bool BundleReader::is_rewritten() const {
  try {
    return bundle_index_crc(files_, prefix_) != index_crc_;
  } catch (const Error&) {
    return false;
  }
}

void BundleReader::fail_rewritten() const {
  throw UnavailableError(
      str("checkpoint '", prefix_, "' was rewritten while it was read; read it again"));
}

void BundleReader::take_index(std::string_view bytes, const std::string& path) {
  std::vector<TableEntry> table = parse_table(bytes, path);
  if (table.empty() || !table[0].key.empty()) {
    throw DataLossError(str("'", path, "': has no header; is it a checkpoint's index?"));
  }
  num_shards_ = parse_bundle_header(table[0].value, path);
  size_t part_key_bytes = 0;  // of parts, which come first, without those that wholes have listed
  for (size_t i = 1; i < table.size(); ++i) {
    auto& [key, value] = table[i];
    if (key.size() > kMostKeyBytes) {
      throw DataLossError(str("'", path, "': an entry's key has ", key.size(), " bytes"));
    }
    const std::string what = str("'", path, "': entry ", quoted(key));
    BundleEntry entry = parse_bundle_entry(value, key, what, part_key_bytes);
    part_key_bytes -= key_bytes(entry);
    check_entry(key, entry);
    if (key[0] == '\0') {
      part_key_bytes += key.size();
      parts_.emplace(std::move(key), std::move(entry));
    } else {
      entries_.emplace(std::move(key), std::move(entry));
    }
  }
  for (const auto& [name, entry] : entries_) check_slices(name, entry);
}

std::string BundleReader::place(const BundleEntry& entry) const {
  return str("'", bundle_data_path(prefix_, entry.shard, num_shards_), "', bytes ", entry.offset,
             " to ", entry.offset + entry.size);
}

void BundleReader::fail(std::string_view name, const BundleEntry& entry,
                        const std::string& problem) const {
  if (is_rewritten()) fail_rewritten();
  throw DataLossError(str(place(entry), ": tensor ", quoted(name), ": ", problem));
}

std::string BundleReader::memory_for(std::string_view name, const BundleEntry& entry) const {
  try {
    return std::string(entry.size, '\0');
  } catch (const std::bad_alloc&) {
    throw ResourceExhaustedError(
        str(place(entry), ": tensor ", quoted(name), ": no memory for its ", entry.size, " bytes"));
  }
}

// The size is that of the shape, and the bytes lie in the file.
void BundleReader::check_entry(const std::string& name, const BundleEntry& entry) {
  const std::string what = str("'", bundle_index_path(prefix_), "': entry ", quoted(name));
  if (!entry.slices.empty()) return;
  const uint64_t elements = num_elements(entry.shape, what);
  const uint64_t item = size_of(entry.type);
  const bool fits =
      item == 0 ? elements <= entry.size : entry.size % item == 0 && entry.size / item == elements;
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

// The parts are there, and together they are the whole.
void BundleReader::check_slices(const std::string& name, const BundleEntry& entry) const {
  if (entry.slices.empty()) return;
  const std::string what = str("'", bundle_index_path(prefix_), "': entry ", quoted(name));
  if (size_of(entry.type) == 0) throw DataLossError(what + ": strings in slices");
  BoxCover cover(entry.shape);
  for (const BundleEntry::Slice& slice : entry.slices) {
    const auto found = parts_.find(slice.key);
    if (found == parts_.end()) throw DataLossError(what + ": one of its slices is missing");
    const BundleEntry& stored = found->second;
    if (stored.shape != slice.slice.length || stored.type != entry.type || !stored.slices.empty()) {
      throw DataLossError(what + ": one of its slices is of another shape or type");
    }
    cover.add(slice.slice);
  }
  if (!cover.is_exact()) throw DataLossError(what + ": its slices overlap or leave gaps");
}

const BundleEntry& BundleReader::entry(std::string_view name) const {
  const auto found = entries_.find(name);
  if (found != entries_.end()) return found->second;
  throw NotFoundError(str("checkpoint '", prefix_, "' has no tensor ", quoted(name)));
}

bool BundleReader::join_rows(const std::vector<std::string>& names) {
  BundleEntry whole;
  for (const std::string& name : names) {
    const auto found = entries_.find(name);
    if (found == entries_.end()) return false;
    const BundleEntry& part = found->second;
    if (part.shape.empty() || !part.slices.empty() || size_of(part.type) == 0) return false;
    if (whole.slices.empty()) {
      whole.type = part.type;
      whole.shape = part.shape;
      whole.shape[0] = 0;
    }
    train::TensorSlice slice{.start = std::vector<int64_t>(part.shape.size(), 0),
                             .length = part.shape};
    slice.start[0] = whole.shape[0];
    std::vector<int64_t> as_whole = part.shape;
    as_whole[0] = whole.shape[0];
    const bool fits = part.type == whole.type && as_whole == whole.shape;
    if (!fits || __builtin_add_overflow(whole.shape[0], part.shape[0], &whole.shape[0])) {
      return false;
    }
    whole.slices.push_back({std::move(slice), name});
  }
  for (const std::string& name : names) parts_.insert(entries_.extract(name));
  entries_.emplace(names[0], std::move(whole));
  return true;
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
  auto* next = static_cast<char*>(out);
  uint32_t crc = 0;
  file_of(entry).scan(entry.offset, entry.size, [&](std::string_view block) {
    crc = copy_with_crc(block, next, crc);
    next += block.size();
  });
  if (mask_crc(crc) != entry.crc) fail(name, entry, kWrongChecksum);
}

void BundleReader::verify_stored(std::string_view name, const BundleEntry& entry) const {
  if (size_of(entry.type) == 0 && entry.type != BundleType::kString) {
    // The layout of other types is TensorFlow's secret: their bytes cannot be checked.
    return;
  }
  if (entry.type == BundleType::kString) return parse_strings(name, entry, nullptr);
  uint32_t crc = 0;
  file_of(entry).scan(entry.offset, entry.size,
                      [&](std::string_view block) { crc = crc32c(block, crc); });
  if (mask_crc(crc) != entry.crc) fail(name, entry, kWrongChecksum);
}

void BundleReader::verify(std::string_view name) const {
  const BundleEntry& whole = entry(name);
  if (whole.slices.empty()) return verify_stored(name, whole);
  for (const BundleEntry::Slice& slice : whole.slices) verify_stored(name, part(slice));
}

// The bytes of one entry in a pass over its file.
struct BundleReader::Run {
  std::string_view name;
  const BundleEntry* entry = nullptr;
  char* out = nullptr;  // nullptr: only verified
  uint64_t done = 0;
  uint32_t crc = 0;
};

void BundleReader::read_all(const std::map<std::string, void*, std::less<>>& wanted,
                            const std::set<std::string, std::less<>>& verified_elsewhere) const {
  std::map<uint32_t, std::vector<Run>> runs;
  const auto add = [&](std::string_view name, const BundleEntry& entry, void* out) {
    runs[entry.shard].push_back({name, &entry, static_cast<char*>(out)});
  };
  for (const auto& [name, entry] : entries_) {
    const auto found = wanted.find(name);
    void* out = found == wanted.end() ? nullptr : found->second;
    if (out == nullptr && verified_elsewhere.contains(name)) continue;
    if (!entry.slices.empty() || size_of(entry.type) == 0) {
      out == nullptr ? verify(name) : read(name, out);
    } else {
      add(name, entry, out);
    }
  }
  for (auto& [shard, one_file] : runs) scan_runs(shard, one_file);
}

// Entries that follow one another are read in one scan; those that overlap, as nobody writes them,
// one by one.
void BundleReader::scan_runs(uint32_t shard, std::vector<Run>& runs) const {
  std::sort(runs.begin(), runs.end(),
            [](const Run& a, const Run& b) { return a.entry->offset < b.entry->offset; });
  std::vector<Run*> in_order;
  uint64_t end = 0;
  for (Run& run : runs) {
    if (run.entry->size > 0 && run.entry->offset >= end) {
      in_order.push_back(&run);
      end = run.entry->offset + run.entry->size;
    } else if (run.out != nullptr) {
      read_checked(run.name, *run.entry, run.out);
    } else {
      verify_stored(run.name, *run.entry);
    }
  }
  if (in_order.empty()) return;
  uint64_t place = in_order.front()->entry->offset;
  auto next = in_order.begin();
  shards_.find(shard)->second->scan(place, end - place, [&](std::string_view block) {
    const uint64_t block_end = place + block.size();
    while (next != in_order.end() && (*next)->entry->offset < block_end) {
      Run& run = **next;
      const BundleEntry& entry = *run.entry;
      const std::string_view part =
          block.substr(entry.offset + run.done - place, entry.size - run.done);
      run.crc = run.out == nullptr ? crc32c(part, run.crc)
                                   : copy_with_crc(part, run.out + run.done, run.crc);
      run.done += part.size();
      if (run.done < entry.size) break;
      if (mask_crc(run.crc) != entry.crc) fail(run.name, entry, kWrongChecksum);
      ++next;
    }
    place = block_end;
  });
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

void BundleReader::check_slice(std::string_view name, const train::TensorSlice& slice) const {
  const BundleEntry& whole = entry(name);
  bool fits = size_of(whole.type) > 0 && slice.start.size() == whole.shape.size() &&
              slice.length.size() == whole.shape.size();
  for (size_t d = 0; fits && d < whole.shape.size(); ++d) {
    fits = slice.start[d] >= 0 && slice.length[d] >= 0 &&
           slice.start[d] <= whole.shape[d] - slice.length[d];
  }
  if (!fits) {
    throw InvalidArgumentError(str("tensor ", quoted(name), " of '", prefix_,
                                   "' does not contain the slice that is asked for"));
  }
}

void BundleReader::read_slice(std::string_view name, const train::TensorSlice& slice,
                              void* out) const {
  check_slice(name, slice);
  const BundleEntry& whole = entry(name);
  const uint64_t item = size_of(whole.type);
  const auto copy_part = [&](const BundleEntry& stored, const train::TensorSlice& place) {
    std::string bytes = memory_for(name, stored);
    read_checked(name, stored, bytes.data());
    copy_box({.from = bytes.data(),
              .from_slice = place,
              .to = out,
              .to_slice = slice,
              .item_bytes = item});
  };
  if (whole.slices.empty()) {
    copy_part(whole, {std::vector<int64_t>(whole.shape.size(), 0), whole.shape});
    return;
  }
  for (const BundleEntry::Slice& stored : whole.slices) {
    if (boxes_meet(stored.slice, slice)) copy_part(part(stored), stored.slice);
  }
}

// Strings are stored as their lengths, a checksum of the lengths, and their bytes. The entry's
// checksum is over the lengths as numbers of four (from 2^32 on eight) bytes, then the rest.
void BundleReader::parse_strings(std::string_view name, const BundleEntry& entry,
                                 std::vector<std::string>* out) const {
  std::string bytes = memory_for(name, entry);
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
  out->reserve(count);
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

uint32_t bundle_index_crc(FileSystem& files, std::string_view prefix) {
  const auto index = files.open(bundle_index_path(prefix));
  uint32_t crc = 0;
  index->scan(0, index->size(), [&](std::string_view block) { crc = crc32c(block, crc); });
  return crc;
}

}  // namespace cohort::internal
