#include <algorithm>

#include "cohort/core/bytes/varint.h"
#include "cohort/core/error.h"
#include "cohort/core/files/crc32c.h"
#include "cohort/train/bundle/table.h"

namespace cohort::internal {
namespace {

constexpr size_t kFooterBytes = 48;
constexpr size_t kHandlesBytes = 40;
constexpr uint64_t kMagic = 0xdb4775248b80fb57u;
constexpr size_t kTrailerBytes = 5;
// Keys share prefixes and entries may be tiny: without these limits a small file could ask for much
// memory. Real indexes are far below them.
constexpr size_t kFreeKeyBytes = size_t{16} << 20;
constexpr size_t kFreeEntries = 100'000;
constexpr size_t kBytesPerEntry = 256;

template <class T>
T little_endian(std::string_view bytes) {
  T value = 0;
  for (size_t i = sizeof(T); i-- > 0;) {
    value = static_cast<T>(value << 8 | static_cast<unsigned char>(bytes[i]));
  }
  return value;
}

struct Handle {
  uint64_t offset = 0;
  uint64_t size = 0;
};

class TableParser {
 public:
  TableParser(std::string_view bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  std::vector<TableEntry> parse() {
    if (bytes_.size() < kFooterBytes) fail(str("has ", bytes_.size(), " bytes, no table has"));
    const size_t footer_at = bytes_.size() - kFooterBytes;
    std::string_view footer = bytes_.substr(footer_at);
    if (little_endian<uint64_t>(footer.substr(kHandlesBytes)) != kMagic) {
      fail("does not end as a table does; it is cut short, or no checkpoint index");
    }
    const std::string_view handles = footer.substr(0, kHandlesBytes);
    footer = handles;
    const Handle metaindex = take_handle(footer);
    const Handle index = take_handle(footer);
    check_footer(handles, metaindex, index);

    std::vector<TableEntry> index_entries;
    read_block(index, index_entries);
    uint64_t next = 0;
    for (const TableEntry& entry : index_entries) {
      std::string_view value = entry.value;
      const Handle block = take_handle(value);
      if (!value.empty()) fail("an index entry is too long");
      next = expect_at(block, next);
      const size_t first = entries_.size();
      read_block(block, entries_);
      check_order(first, entry.key);
    }
    std::vector<TableEntry> metaindex_entries;
    read_block(metaindex, metaindex_entries);
    next = expect_at(metaindex, next);
    next = expect_at(index, next);
    if (next != footer_at) fail(str("the blocks end at byte ", next, ", the footer is elsewhere"));
    return std::move(entries_);
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const {
    throw DataLossError(str("'", file_, "': ", problem));
  }

  uint64_t number(std::string_view& in) const {
    try {
      return take_varint(in);
    } catch (const DataLossError& error) {
      fail(error.what());
    }
  }

  Handle take_handle(std::string_view& in) const {
    Handle handle;
    handle.offset = number(in);
    handle.size = number(in);
    return handle;
  }

  // No checksum covers the footer, so it must be what a writer makes of its handles: a number of
  // more bytes than it needs may be a shorter one with a flipped bit.
  void check_footer(std::string_view footer, const Handle& metaindex, const Handle& index) const {
    std::string expected;
    for (const Handle& handle : {metaindex, index}) {
      append_varint(expected, handle.offset);
      append_varint(expected, handle.size);
    }
    expected.resize(std::max(expected.size(), kHandlesBytes), '\0');
    if (footer != expected) fail("its footer is damaged");
  }

  // Blocks cover the file without gaps: the place after `handle`, which must be at `place`.
  uint64_t expect_at(const Handle& handle, uint64_t place) const {
    if (handle.offset != place) {
      fail(str("a block is said to be at byte ", handle.offset, " instead of ", place));
    }
    return handle.offset + handle.size + kTrailerBytes;
  }

  // The content of a block whose checksum holds.
  std::string_view block_at(const Handle& handle) const {
    const size_t limit = bytes_.size() - kFooterBytes;
    if (handle.offset > limit || handle.size > limit - handle.offset ||
        kTrailerBytes > limit - handle.offset - handle.size) {
      fail(str("a block of ", handle.size, " bytes at byte ", handle.offset,
               " does not fit into its ", bytes_.size(), " bytes"));
    }
    const std::string_view covered = bytes_.substr(handle.offset, handle.size + 1);
    const auto stored = little_endian<uint32_t>(bytes_.substr(handle.offset + handle.size + 1));
    if (mask_crc(crc32c(covered)) != stored) {
      fail(str("the checksum of the block at byte ", handle.offset, " does not hold"));
    }
    if (covered.back() != 0) {
      throw UnimplementedError(str("'", file_, "': the block at byte ", handle.offset,
                                   " is compressed (type ", static_cast<int>(covered.back()),
                                   "); only uncompressed indexes are read"));
    }
    return covered.substr(0, handle.size);
  }

  void read_block(const Handle& handle, std::vector<TableEntry>& out) {
    std::string_view block = block_at(handle);
    if (block.size() < 4) fail(str("the block at byte ", handle.offset, " is too short"));
    const uint64_t restarts = little_endian<uint32_t>(block.substr(block.size() - 4));
    if (restarts * 4 > block.size() - 4) {
      fail(str("the block at byte ", handle.offset, " has more restarts than bytes"));
    }
    block.remove_suffix(4 + restarts * 4);
    std::string key;
    while (!block.empty()) {
      const uint64_t shared = number(block);
      const uint64_t unshared = number(block);
      const uint64_t value = number(block);
      if (shared > key.size() || unshared > block.size() || value > block.size() - unshared) {
        fail(str("an entry of the block at byte ", handle.offset, " is longer than the block"));
      }
      key.resize(shared);
      key += block.substr(0, unshared);
      out.push_back({key, block.substr(unshared, value)});
      block.remove_prefix(unshared + value);
      charge(key.size());
    }
  }

  void charge(size_t key_bytes) {
    key_bytes_ += key_bytes;
    ++count_;
    if (key_bytes_ > bytes_.size() + kFreeKeyBytes ||
        count_ > kFreeEntries + bytes_.size() / kBytesPerEntry) {
      fail(str("has more than ", count_, " entries or longer keys than its size allows"));
    }
  }

  // Keys ascend strictly, and those of a block do not exceed its key in the index.
  void check_order(size_t first, const std::string& limit) const {
    for (size_t i = std::max<size_t>(first, 1); i < entries_.size(); ++i) {
      if (entries_[i - 1].key >= entries_[i].key) fail("its keys are not in order");
    }
    if (first == entries_.size() || entries_.back().key > limit) {
      fail("a block and the index of blocks disagree");
    }
  }

  const std::string_view bytes_;
  const std::string& file_;
  std::vector<TableEntry> entries_;
  size_t key_bytes_ = 0;
  size_t count_ = 0;
};

}  // namespace

std::vector<TableEntry> parse_table(std::string_view bytes, const std::string& file) {
  return TableParser(bytes, file).parse();
}

}  // namespace cohort::internal
