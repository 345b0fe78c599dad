#include "cohort/train/bundle/bundle_writer.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "cohort/core/bytes/varint.h"
#include "cohort/core/error.h"
#include "cohort/core/files/crc32c.h"
#include "cohort/core/files/temporary_files.h"
#include "cohort/core/host/posix_error.h"
#include "cohort/core/text.h"
#include "cohort/train/bundle/box_cover.h"
#include "cohort/train/bundle/ordered_code.h"
#include "cohort/train/bundle/table.h"

namespace cohort::internal {
namespace {

constexpr size_t kMostNameBytes = size_t{64} << 10;  // readers refuse far longer ones

}  // namespace

BundleWriter::BundleWriter(FileSystem& files, std::string prefix,
                           const BundleWriterOptions& options)
    : files_(files),
      prefix_(std::move(prefix)),
      directory_(parent_directory(prefix_)),
      temporary_index_(temporary_path(directory_, base_name(prefix_) + ".index")),
      data_(files_, temporary_path(directory_, base_name(prefix_) + ".data"),
            options.expected_bytes) {}

BundleWriter::~BundleWriter() {
  if (finished_) return;
  discard_file(files_, temporary_index_);
  for (const Adopted& file : adopted_) discard_file(files_, file.path);
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
  entry.crc = data_.append(bytes, entry.crc);
  entry.size += bytes.size();
}

void BundleWriter::add(std::string_view name, const BundleTensor& tensor, std::string_view bytes) {
  check_name(name);
  add_stored(name, tensor, bytes);
}

void BundleWriter::add(std::string_view name, const BundleTensor& tensor, const Stored& stored) {
  check_name(name);
  add_stored(name, tensor, stored);
}

void BundleWriter::check_size(std::string_view key, const BundleTensor& tensor,
                              uint64_t bytes) const {
  const uint64_t elements = num_elements(tensor.shape, std::string(key));
  const uint64_t item = size_of(tensor.type);
  if (item == 0) {
    throw InvalidArgumentError(str("checkpoint '", prefix_, "': tensor ", quoted(key), " is of ",
                                   type_name(tensor.type), ", which has no numbers"));
  }
  if (bytes % item != 0 || bytes / item != elements) {
    throw InvalidArgumentError(str("checkpoint '", prefix_, "': tensor ", quoted(key), " has ",
                                   bytes, " bytes, which are not ", elements, " elements of ",
                                   type_name(tensor.type)));
  }
}

void BundleWriter::add_stored(std::string_view key, const BundleTensor& tensor,
                              std::string_view bytes) {
  check_size(key, tensor, bytes.size());
  BundleEntry& entry = new_entry(key, tensor);
  entry.offset = data_.size();
  append(entry, bytes);
  entry.crc = mask_crc(entry.crc);
}

void BundleWriter::add_stored(std::string_view key, const BundleTensor& tensor,
                              const Stored& stored) {
  check_size(key, tensor, stored.size);
  const Adopted& file = adopted_.at(stored.file);
  if (stored.size > file.size || stored.offset > file.size - stored.size) {
    throw DataLossError(str("checkpoint '", prefix_, "': the file ", quoted(file.path),
                            " was to have tensor ", quoted(key), " at ", stored.offset, " with ",
                            stored.size, " bytes, but it ends at ", file.size));
  }
  BundleEntry& entry = new_entry(key, tensor);
  entry.shard = static_cast<uint32_t>(stored.file) + 1;
  entry.offset = stored.offset;
  entry.size = stored.size;
  entry.crc = stored.crc;
}

BundleWriter::OthersTarget BundleWriter::target_for_others() {
  std::error_code error;
  const std::filesystem::path directory = std::filesystem::absolute(directory_, error);
  if (error) throw_errno(error.value(), "examining " + quoted(directory_));
  return {.directory = directory.string(),
          .probe = base_name(data_.path()),
          .file_prefix = base_name(data_.path()) + str("-of-others-", targets_++, '-')};
}

size_t BundleWriter::adopt(const std::string& name) {
  adopted_.push_back({join_path(directory_, name), 0});
  adopted_.back().size = files_.open(adopted_.back().path)->size();
  return adopted_.size() - 1;
}

void BundleWriter::add_strings(std::string_view name, const std::vector<int64_t>& shape,
                               std::span<const std::string_view> strings) {
  check_name(name);
  if (num_elements(shape, std::string(name)) != strings.size()) {
    throw InvalidArgumentError(str("checkpoint '", prefix_, "': tensor ", quoted(name), " has ",
                                   strings.size(), " strings, which do not fit its shape"));
  }
  BundleEntry& entry = new_entry(name, {BundleType::kString, shape});
  entry.offset = data_.size();
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
  add_part(name, whole, slice, bytes);
}

void BundleWriter::add_slice(std::string_view name, const BundleTensor& whole,
                             const train::TensorSlice& slice, const Stored& stored) {
  add_part(name, whole, slice, stored);
}

template <class Data>
void BundleWriter::add_part(std::string_view name, const BundleTensor& whole,
                            const train::TensorSlice& slice, const Data& data) {
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
  add_stored(key, {whole.type, slice.length}, data);
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

// The bundle's files are the last of all.
uint32_t BundleWriter::first_shard(uint32_t num_shards) const {
  return num_shards - 1 - static_cast<uint32_t>(adopted_.size());
}

// The smallest number of shards for which no file of this bundle is one that the present index may
// name.
uint32_t BundleWriter::choose_num_shards() {
  auto n = static_cast<uint32_t>(adopted_.size()) + 1;
  if (!files_.exists(bundle_index_path(prefix_))) return n;
  const auto is_taken = [&] {
    for (uint32_t shard = first_shard(n); shard < n; ++shard) {
      if (files_.exists(bundle_data_path(prefix_, shard, n))) return true;
    }
    return false;
  };
  while (is_taken()) ++n;
  return n;
}

// Readers refuse what could take much memory: better now, while the checkpoint before is there.
void BundleWriter::check_readable(const std::string& index) const {
  try {
    parse_table(index, temporary_index_);
  } catch (const DataLossError& error) {
    throw InvalidArgumentError(str("checkpoint '", prefix_, "' of ", entries_.size(),
                                   " tensors would have an index that no reader takes (",
                                   error.what(), "); save fewer tensors, or with shorter names"));
  }
}

void BundleWriter::write_index(uint32_t num_shards) {
  std::map<std::string, std::string> table;
  table.emplace("", format_bundle_header(num_shards));
  for (auto& [name, entry] : entries_) {
    if (entry.slices.empty()) entry.shard += first_shard(num_shards);
    table.emplace(name, format_bundle_entry(entry));
  }
  const std::string bytes = format_table(table);
  check_readable(bytes);
  const auto index = files_.create(temporary_index_, {.expected_bytes = bytes.size()});
  index->append(bytes);
  index->sync();
  index->close();
}

// Returns their names.
std::vector<std::string> BundleWriter::rename_data(uint32_t num_shards) {
  std::vector<std::string> renamed;
  try {
    const auto rename = [&](const std::string& path) {
      const auto shard = first_shard(num_shards) + static_cast<uint32_t>(renamed.size());
      std::string name = bundle_data_path(prefix_, shard, num_shards);
      files_.rename(path, name);
      renamed.push_back(std::move(name));
    };
    rename(data_.path());
    data_.let_go();
    for (const Adopted& file : adopted_) rename(file.path);
    files_.sync_directory(directory_);  // the data has its names before an index can refer to them
  } catch (const Error&) {
    for (const std::string& name : renamed) discard_file(files_, name);
    throw;
  }
  return renamed;
}

void BundleWriter::finish() {
  check_slices_cover();
  data_.finish();
  const uint32_t num_shards = choose_num_shards();
  write_index(num_shards);
  const std::vector<std::string> kept = rename_data(num_shards);
  // A rename that reports an error may have happened all the same (network file systems do that),
  // so the data stays, whose index it may be.
  files_.rename(temporary_index_, bundle_index_path(prefix_));
  finished_ = true;
  files_.sync_directory(directory_);
  remove_old_data(kept);
}

void BundleWriter::remove_old_data(const std::vector<std::string>& kept) noexcept {
  try {
    for (const std::string& name : list_data_files(files_, prefix_)) {
      const bool is_kept = std::any_of(kept.begin(), kept.end(), [&](const std::string& path) {
        return base_name(path) == name;
      });
      if (!is_kept) files_.remove(join_path(directory_, name));
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
