// Reads TensorFlow's TensorBundle files: PREFIX.index and PREFIX.data-?????-of-?????.
//
//   BundleReader bundle(posix_file_system(), "dir/ckpt-1");
//   const BundleEntry& entry = bundle.entry("w/.ATTRIBUTES/VARIABLE_VALUE");
//   std::vector<char> bytes(entry.size);
//   bundle.read("w/.ATTRIBUTES/VARIABLE_VALUE", bytes.data());
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/files/file_system.h"
#include "cohort/train/bundle/bundle_entry.h"

namespace cohort::internal {

// The index is read and checked whole when a reader is made: types, shapes, sizes and offsets fit
// each other and the data files, which stay open (a checkpoint that is removed meanwhile can still
// be read). Data is checked by its checksum whenever it is read. A checkpoint that is rewritten
// under its name while it is opened is opened again: index and data are of one save, the one before
// or the new one. Memory: six times the index file and 64 MiB at most, whatever it says, beside
// what callers hand in; while strings or parts of a tensor are read, also their bytes.
// Thread safety: any thread, but for join_rows.
class BundleReader {
 public:
  using Entries = std::map<std::string, BundleEntry, std::less<>>;

  // Errors: NotFound (no index or no data file of that prefix), DataLoss (damaged; file and entry),
  // Unimplemented (written for other readers), Unavailable (rewritten again and again), as
  // FileSystem::open.
  BundleReader(FileSystem& files, std::string prefix);

  const std::string& prefix() const { return prefix_; }
  // bundle_index_crc, of the index that was read.
  uint32_t index_crc() const { return index_crc_; }
  // The tensors by name, without the parts of partitioned ones, which the whole one's entry lists.
  const Entries& entries() const { return entries_; }
  bool contains(std::string_view name) const { return entries_.find(name) != entries_.end(); }
  // Errors: NotFound.
  const BundleEntry& entry(std::string_view name) const;
  // The size of all data files together.
  uint64_t data_bytes() const;

  // The elements in row-major order; `out` holds num_elements * size_of(type) bytes.
  // Errors: NotFound, InvalidArgument (strings), DataLoss (the checksum does not hold; names the
  // file, the tensor and its place), Unavailable (that, after somebody has copied another
  // checkpoint over the files), ResourceExhausted (no memory for a part of it).
  void read(std::string_view name, void* out) const;
  // Errors: NotFound, InvalidArgument (the slice is outside of the tensor).
  void check_slice(std::string_view name, const train::TensorSlice& slice) const;
  // A part of a tensor, however it is stored. Errors: also those of check_slice.
  void read_slice(std::string_view name, const train::TensorSlice& slice, void* out) const;
  // In row-major order. Errors: as read; InvalidArgument (no strings).
  std::vector<std::string> read_strings(std::string_view name) const;

  // Joins tensors that are the parts of one along axis 0, in this order, into that one, under the
  // first one's name: they are tensors of their own no more. Returns false, and does nothing, if
  // some are not there, differ in type or row shape, or are partitioned themselves. Not while other
  // threads use the reader.
  bool join_rows(const std::vector<std::string>& names);

  // Reads a tensor's data for its checksum alone. Errors: as read.
  void verify(std::string_view name) const;
  // Reads the tensors that are wanted to where they are wanted (as read), and verifies all others,
  // in one pass over the files in their own order, but those that somebody else verifies. Errors:
  // as read.
  void read_all(const std::map<std::string, void*, std::less<>>& wanted,
                const std::set<std::string, std::less<>>& verified_elsewhere = {}) const;

 private:
  bool open_all();
  std::unique_ptr<ReadableFile> open_index(const std::string& path) const;
  void take_index(std::string_view bytes, const std::string& path);
  bool is_rewritten() const;
  [[noreturn]] void fail_rewritten() const;
  [[noreturn]] void fail(std::string_view name, const BundleEntry& entry,
                         const std::string& problem) const;
  std::string memory_for(std::string_view name, const BundleEntry& entry) const;
  std::string place(const BundleEntry& entry) const;
  void check_entry(const std::string& name, const BundleEntry& entry);
  void check_slices(const std::string& name, const BundleEntry& entry) const;
  const BundleEntry& part(const BundleEntry::Slice& slice) const;
  const ReadableFile& file_of(const BundleEntry& entry) const;
  void read_checked(std::string_view name, const BundleEntry& entry, void* out) const;
  void verify_stored(std::string_view name, const BundleEntry& entry) const;
  struct Run;
  void scan_runs(uint32_t shard, std::vector<Run>& runs) const;
  void parse_strings(std::string_view name, const BundleEntry& entry,
                     std::vector<std::string>* out) const;

  FileSystem& files_;
  std::string prefix_;
  uint32_t index_crc_ = 0;
  uint32_t num_shards_ = 0;
  Entries entries_;
  Entries parts_;                                             // by slice key
  std::map<uint32_t, std::unique_ptr<ReadableFile>> shards_;  // those that entries name
};

// The checksum of the index file's bytes. The index holds the checksums of all data, so two
// checkpoints have the same one exactly if they have the same content. Errors: as FileSystem::open.
uint32_t bundle_index_crc(FileSystem& files, std::string_view prefix);

}  // namespace cohort::internal
