// Writes TensorFlow's TensorBundle files so that no crash, full disk or power cut can cost what was
// there before.
//
//   BundleWriter bundle(posix_file_system(), "dir/ckpt-1", {.expected_bytes = 8});
//   bundle.add("w/.ATTRIBUTES/VARIABLE_VALUE", {BundleType::kFloat32, {2}}, bytes);
//   bundle.finish();                              // from here on it is there, also after a crash
//
// Data goes to a file of a temporary name, which is synced, renamed, and its directory synced; then
// the same with the index. Renaming the index is the moment at which the checkpoint exists. Where
// one of the same prefix exists its data files stay beside the new ones until that moment: the new
// ones take other shard numbers (data-00001-of-00002), which every reader of the format follows.
//
// Other processes may write data files of their own into the directory, which the bundle adopts.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/files/file_system.h"
#include "cohort/train/bundle/bundle_data_file.h"
#include "cohort/train/bundle/bundle_entry.h"

namespace cohort::internal {

struct BundleWriterOptions {
  uint64_t expected_bytes = 0;  // of all data; a disk too full for it is found before writing
};

struct BundleTensor {
  BundleType type = BundleType::kFloat32;
  std::vector<int64_t> shape;
};

// Thread safety: none. One writer of a prefix at a time.
class BundleWriter {
 public:
  // Errors of all calls: as FileSystem's.
  BundleWriter(FileSystem& files, std::string prefix, const BundleWriterOptions& options = {});
  // Removes what was written, unless finish() was called.
  ~BundleWriter();
  BundleWriter(const BundleWriter&) = delete;
  BundleWriter& operator=(const BundleWriter&) = delete;

  // `bytes`: the elements in row-major order, little-endian.
  // Errors: InvalidArgument (a name that is empty, begins with a zero byte, exceeds 64 KiB or was
  // added before; bytes that do not fit the shape; a type without numbers).
  void add(std::string_view name, const BundleTensor& tensor, std::string_view bytes);
  void add_strings(std::string_view name, const std::vector<int64_t>& shape,
                   std::span<const std::string_view> strings);
  // Part of a partitioned tensor. Errors: also InvalidArgument (outside the whole; parts of
  // different wholes under one name; no dimensions).
  void add_slice(std::string_view name, const BundleTensor& whole, const train::TensorSlice& slice,
                 std::string_view bytes);

  // The directory where other processes write, and what they call their files.
  struct OthersTarget {
    std::string directory;    // absolute
    std::string probe;        // a file of this bundle in it
    std::string file_prefix;  // of temporary names
  };
  // Another one each time.
  OthersTarget target_for_others();
  // Takes over a file that another process has written there and synced. Returns its number.
  // Errors: NotFound (there is none of this name).
  size_t adopt(const std::string& name);
  // The place of a tensor's bytes in an adopted file.
  struct Stored {
    size_t file = 0;
    uint64_t offset = 0;
    uint64_t size = 0;
    uint32_t crc = 0;  // masked
  };
  // Adds a tensor whose bytes lie in an adopted file. Errors: also DataLoss (the file ends before).
  void add(std::string_view name, const BundleTensor& tensor, const Stored& stored);
  void add_slice(std::string_view name, const BundleTensor& whole, const train::TensorSlice& slice,
                 const Stored& stored);

  // Errors: also InvalidArgument (the parts of a partitioned tensor do not make it up; so many
  // tensors, or names so long, that readers refuse the index).
  void finish();

 private:
  void check_name(std::string_view name) const;
  BundleEntry& new_entry(std::string_view key, const BundleTensor& tensor);
  void check_size(std::string_view key, const BundleTensor& tensor, uint64_t bytes) const;
  void add_stored(std::string_view key, const BundleTensor& tensor, std::string_view bytes);
  void add_stored(std::string_view key, const BundleTensor& tensor, const Stored& stored);
  template <class Data>
  void add_part(std::string_view name, const BundleTensor& whole, const train::TensorSlice& slice,
                const Data& data);
  void append(BundleEntry& entry, std::string_view bytes);
  void check_slices_cover() const;
  uint32_t first_shard(uint32_t num_shards) const;
  uint32_t choose_num_shards();
  void check_readable(const std::string& index) const;
  void write_index(uint32_t num_shards);
  std::vector<std::string> rename_data(uint32_t num_shards);
  void remove_old_data(const std::vector<std::string>& kept) noexcept;

  FileSystem& files_;
  const std::string prefix_;
  const std::string directory_;
  const std::string temporary_index_;
  BundleDataFile data_;
  struct Adopted {
    std::string path;
    uint64_t size = 0;
  };
  std::vector<Adopted> adopted_;
  size_t targets_ = 0;  // given to others
  std::map<std::string, BundleEntry, std::less<>> entries_;
  bool finished_ = false;
};

// The names of the data files of `prefix` in its directory.
std::vector<std::string> list_data_files(FileSystem& files, const std::string& prefix);

}  // namespace cohort::internal
