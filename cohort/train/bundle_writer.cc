#include "cohort/train/bundle_writer.h"

#include <algorithm>

#include "cohort/core/error.h"
#include "cohort/core/files/crc32c.h"
#include "cohort/core/text.h"
#include "cohort/core/varint.h"
#include "cohort/train/box_cover.h"
#include "cohort/train/ordered_code.h"
#include "cohort/train/table.h"
#include "cohort/train/temporary_files.h"

namespace cohort::internal {
namespace {

// A checksum of bytes that were just copied costs little while they are in the cache.
constexpr size_t kPieceBytes = size_t{256} << 10;
constexpr size_t kMostNameBytes = size_t{64} << 10;  // readers refuse far longer ones

}  // namespace

BundleWriter::BundleWriter(FileSystem& files, std::string prefix,
                           const BundleWriterOptions& options)
    : files_(files),
      prefix_(std::move(prefix)),
      directory_(parent_directory(prefix_)),
      temporary_data_(temporary_path(directory_, base_name(prefix_) + ".data")),
      temporary_index_(temporary_path(directory_, base_name(prefix_) + ".index")) {
  try {
    data_ = files_.create(temporary_data_, {.expected_bytes = options.expected_bytes});
  } catch (const Error&) {
    discard(temporary_data_);  // a file may be there although its space is not
    throw;
  }
}

BundleWriter::~BundleWriter() {
  if (finished_) return;
  data_.reset();
  discard(temporary_data_);
  discard(temporary_index_);
}

void BundleWriter::discard(const std::string& path) noexcept {
  try {
    if (files_.exists(path)) files_.remove(path);
  } catch (...) {  // the next writer of this directory removes it
  }
}

BundleEntry& BundleWriter::new_entry(std::string_view key, const BundleTensor& tensor) {
  const auto [place, added] = entries_.try_emplace(std::string(key));
  if (!added) {
    throw InvalidArgumentError(
        str("checkpoint '", prefix_, "': two tensors are named ", quoted(key)));
  }
  place->second.type = tensor.type;
  place->second.shape = tensor.shape;
  return place->second;
}

void BundleWriter::check_name(std::string_view name) const {
  if (name.empty()) throw InvalidArgumentError("a tensor of a checkpoint needs a name");
  if (name[0] == '\0' || name.size() > kMostNameBytes) {
    throw InvalidArgumentError(str("checkpoint '", prefix_, "': no tensor can have the name ",
                                   quoted(name.substr(0, 40)), " (", name.size(), " bytes, of ",
                                   kMostNameBytes, "; the first must not be 0)"));
  }
}

// Appends to the entry that was begun last, and continues its (unmasked) checksum.
void BundleWriter::append(BundleEntry& entry, std::string_view bytes) {
  for (size_t done = 0; done < bytes.size(); done += kPieceBytes) {
    const std::string_view piece = bytes.substr(done, kPieceBytes);
    data_->append(piece);
    entry.crc = crc32c(piece, entry.crc);
  }
  entry.size += bytes.size();
  offset_ += bytes.size();
}

void BundleWriter::add(std::string_view name, const BundleTensor& tensor, std::string_view bytes) {
  check_name(name);
  add_stored(name, tensor, bytes);
}

void BundleWriter::add_stored(std::string_view key, const BundleTensor& tensor,
                              std::string_view bytes) {
  const uint64_t elements = num_elements(tensor.shape, std::string(key));
  const uint64_t item = size_of(tensor.type);
  if (item == 0) {
    throw InvalidArgumentError(str("checkpoint '", prefix_, "': tensor ", quoted(key), " is of ",
                                   type_name(tensor.type), ", which has no numbers"));
  }
  if (bytes.size() % item != 0 || bytes.size() / item != elements) {
    throw InvalidArgumentError(str("checkpoint '", prefix_, "': tensor ", quoted(key), " has ",
                                   bytes.size(), " bytes, which are not ", elements,
                                   " elements of ", type_name(tensor.type)));
  }
  BundleEntry& entry = new_entry(key, tensor);
  entry.offset = offset_;
  append(entry, bytes);
  entry.crc = mask_crc(entry.crc);
}

void BundleWriter::add_strings(std::string_view name, const std::vector<int64_t>& shape,
                               std::span<const std::string_view> strings) {
  check_name(name);
  if (num_elements(shape, std::string(name)) != strings.size()) {
    throw InvalidArgumentError(str("checkpoint '", prefix_, "': tensor ", quoted(name), " has ",
                                   strings.size(), " strings, which do not fit its shape"));
  }
  BundleEntry& entry = new_entry(name, {BundleType::kString, shape});
  entry.offset = offset_;
  // Lengths, their checksum, the bytes: see BundleReader.
  std::string head;
  uint32_t crc = 0;
  for (const std::string_view text : strings) {
    const uint64_t length = text.size();
    append_varint(head, length);
    crc = crc32c(&length, length <= UINT32_MAX ? 4 : 8, crc);
  }
  const uint32_t masked = mask_crc(crc);
  char checksum[4];
  for (int i = 0; i < 4; ++i) checksum[i] = static_cast<char>(masked >> (8 * i));
  append(entry, head);
  entry.crc = crc;
  append(entry, {checksum, 4});
  for (const std::string_view text : strings) append(entry, text);
  entry.crc = mask_crc(entry.crc);
}

void BundleWriter::add_slice(std::string_view name, const BundleTensor& whole,
                             const train::TensorSlice& slice, std::string_view bytes) {
  check_name(name);
  bool fits = !whole.shape.empty() && slice.start.size() == whole.shape.size() &&
              slice.length.size() == whole.shape.size();
  for (size_t d = 0; fits && d < whole.shape.size(); ++d) {
    fits = slice.start[d] >= 0 && slice.length[d] > 0 && slice.length[d] <= whole.shape[d] &&
           slice.start[d] <= whole.shape[d] - slice.length[d];
  }
  if (!fits) {
    throw InvalidArgumentError(str("checkpoint '", prefix_, "': a part of tensor ", quoted(name),
                                   " lies outside of it or is empty"));
  }
  const auto found = entries_.find(name);
  const bool first = found == entries_.end();
  if (!first && (found->second.type != whole.type || found->second.shape != whole.shape ||
                 found->second.slices.empty())) {
    throw InvalidArgumentError(str("checkpoint '", prefix_, "': the parts of tensor ", quoted(name),
                                   " belong to different wholes"));
  }
  std::string key = slice_key(name, slice);
  add_stored(key, {whole.type, slice.length}, bytes);
  BundleEntry& entry = first ? new_entry(name, whole) : found->second;
  entry.slices.push_back({slice, std::move(key)});
}

void BundleWriter::check_slices_cover() const {
  for (const auto& [name, entry] : entries_) {
    if (entry.slices.empty()) continue;
    BoxCover cover(entry.shape);
    for (const BundleEntry::Slice& part : entry.slices) cover.add(part.slice);
    if (cover.is_exact()) continue;
    throw InvalidArgumentError(str("checkpoint '", prefix_, "': the parts of tensor ", quoted(name),
                                   " overlap or leave gaps"));
  }
}

// The smallest number n for which data-(n-1)-of-n is no file that the present index may name.
uint32_t BundleWriter::choose_num_shards() {
  uint32_t n = 1;
  if (!files_.exists(bundle_index_path(prefix_))) return n;
  while (files_.exists(bundle_data_path(prefix_, n - 1, n))) ++n;
  return n;
}

void BundleWriter::write_index(uint32_t num_shards) {
  std::map<std::string, std::string> table;
  table.emplace("", format_bundle_header(num_shards));
  for (auto& [name, entry] : entries_) {
    if (entry.slices.empty()) entry.shard = num_shards - 1;
    table.emplace(name, format_bundle_entry(entry));
  }
  const std::string bytes = format_table(table);
  const auto index = files_.create(temporary_index_, {.expected_bytes = bytes.size()});
  index->append(bytes);
  index->sync();
  index->close();
}

void BundleWriter::finish() {
  check_slices_cover();
  data_->sync();
  data_->close();
  data_.reset();
  const uint32_t num_shards = choose_num_shards();
  write_index(num_shards);
  const std::string data_file = bundle_data_path(prefix_, num_shards - 1, num_shards);
  files_.rename(temporary_data_, data_file);
  try {
    files_.sync_directory(directory_);  // the data has its name before an index can refer to it
  } catch (const Error&) {
    discard(data_file);
    throw;
  }
  // Where this reports an error it may have happened all the same (as network file systems do), so
  // the data stays, whose index it may be.
  files_.rename(temporary_index_, bundle_index_path(prefix_));
  finished_ = true;
  files_.sync_directory(directory_);
  remove_old_data(base_name(data_file));
}

void BundleWriter::remove_old_data(const std::string& kept) noexcept {
  try {
    for (const std::string& name : list_data_files(files_, prefix_)) {
      if (name != kept) files_.remove(join_path(directory_, name));
    }
  } catch (...) {  // it costs space and nothing else
  }
}

std::vector<std::string> list_data_files(FileSystem& files, const std::string& prefix) {
  constexpr std::string_view kPattern = ".data-#####-of-#####";
  const std::string base = base_name(prefix);
  std::vector<std::string> found;
  for (std::string& name : files.list(parent_directory(prefix))) {
    if (name.size() != base.size() + kPattern.size() || name.compare(0, base.size(), base) != 0) {
      continue;
    }
    bool matches = true;
    for (size_t i = 0; i < kPattern.size(); ++i) {
      const char c = name[base.size() + i];
      matches &= kPattern[i] == '#' ? c >= '0' && c <= '9' : c == kPattern[i];
    }
    if (matches) found.push_back(std::move(name));
  }
  return found;
}

}  // namespace cohort::internal
