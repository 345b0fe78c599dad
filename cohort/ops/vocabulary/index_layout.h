// The file format of a vocabulary's index, which lies beside the text: `words.txt.cohort-index`.
//
//   part       what
//   text       the text's bytes, copied: who has mapped the index needs no other file, whatever
//              becomes of the text; zeros up to a block's end
//   entries    of each slot: the number of its token, the offset in the text, some bits of the hash
//   pilots     of the perfect hash, 16 bits each
//   lines      the offset of every 16th line, 64 bits each
//   twins      tokens whose hash of 64 bits is that of another token: rarely any
//   checksums  CRC-32C of each block of 64 KiB of all that, 32 bits each
//   identity   of the text: size, times, inode. The only part that is ever written again, with a
//              checksum of its own
//   trailer    the sizes from which all of this follows, and a checksum
//
// Numbers are little-endian. The trailer comes last, so that no file counts which was not written
// to its end. A reader checks the trailer and the list of checksums when it opens the file, and a
// block when it first touches it.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/ops/vocabulary/perfect_hash.h"

namespace cohort::internal {

inline constexpr uint64_t kIndexBlock = uint64_t{64} << 10;
inline constexpr uint64_t kLinesPerSample = 16;

// The part of a line that is the token.
struct TokenColumn {
  static constexpr int64_t kWholeLine = -2;
  int64_t index = kWholeLine;  // or a column from 0
  char delimiter = '\t';
  bool operator==(const TokenColumn&) const = default;
};

// The token of a line without its end. Nothing: the line has no such column.
std::optional<std::string_view> token_of_line(std::string_view line, const TokenColumn& column);

// Tells a text from another one, and from what it was before. Times are in nanoseconds.
struct TextIdentity {
  uint64_t bytes = 0;
  int64_t modified = 0;
  int64_t changed = 0;  // of the inode: no program can set it
  uint64_t inode = 0;
  bool operator==(const TextIdentity&) const = default;
};

// A token whose hash another token has, too.
struct Twin {
  uint64_t hash = 0;
  uint64_t offset = 0;
  uint64_t number = 0;
};

// The entry of a slot: as many bits as numbers and offsets of this text need, and the rest of 8
// bytes, 4 bits at least, of the key's hash.
// Thread safety: immutable.
class EntryFormat {
 public:
  EntryFormat(uint64_t lines, uint64_t text_bytes)
      : number_bits_(static_cast<int>(std::bit_width(lines))),
        offset_bits_(static_cast<int>(std::bit_width(text_bytes))) {
    const int bits = number_bits_ + offset_bits_;
    bytes_ = std::max(8, (bits + 4 + 7) / 8);
    hash_mask_ = mask(std::min(bytes_ * 8 - bits, 32));
  }

  int bytes() const { return bytes_; }
  // An empty slot has the number of a line that does not exist.
  struct Entry {
    uint64_t number = 0;
    uint64_t offset = 0;
    uint64_t hash = 0;
  };
  // What an entry keeps of a key's hash.
  uint64_t part_of(uint64_t mixed) const { return mixed & hash_mask_; }
  // `at` has kSlack bytes more than the entry.
  static constexpr uint64_t kSlack = 8;
  Entry load(const char* at) const {
    uint64_t low = 0;
    std::memcpy(&low, at, 8);
    Wide word = low;
    if (bytes_ > 8) {
      uint64_t high = 0;
      std::memcpy(&high, at + 8, 8);
      word |= Wide{high} << 64;
    }
    return {static_cast<uint64_t>(word) & mask(number_bits_),
            static_cast<uint64_t>(word >> number_bits_) & mask(offset_bits_),
            static_cast<uint64_t>(word >> (number_bits_ + offset_bits_)) & hash_mask_};
  }
  void store(const Entry& entry, char* at) const {
    const Wide word = entry.number | Wide{entry.offset} << number_bits_ |
                      Wide{part_of(entry.hash)} << (number_bits_ + offset_bits_);
    std::memcpy(at, &word, static_cast<size_t>(bytes_));
  }

 private:
  static uint64_t mask(int bits) { return bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1; }

  int number_bits_;
  int offset_bits_;
  int bytes_;
  uint64_t hash_mask_;
};

// The places of an index's parts. Thread safety: immutable.
struct IndexLayout {
  uint64_t text_bytes = 0;
  uint64_t lines = 0;
  uint64_t twins = 0;
  PerfectHash function;
  TokenColumn column;

  EntryFormat entry() const { return {lines, text_bytes}; }
  uint64_t entries_at() const { return up_to(text_bytes, kIndexBlock); }
  uint64_t pilots_at() const {
    const auto entry_bytes = static_cast<uint64_t>(entry().bytes());
    return up_to(entries_at() + function.num_slots() * entry_bytes + EntryFormat::kSlack, 64);
  }
  uint64_t lines_at() const { return up_to(pilots_at() + function.num_buckets() * 2, 64); }
  uint64_t num_samples() const { return (lines + kLinesPerSample - 1) / kLinesPerSample; }
  uint64_t twins_at() const { return up_to(lines_at() + num_samples() * 8, 64); }
  uint64_t checksums_at() const { return up_to(twins_at() + twins * sizeof(Twin), kIndexBlock); }
  uint64_t num_blocks() const { return checksums_at() / kIndexBlock; }
  uint64_t identity_at() const { return up_to(checksums_at() + num_blocks() * 4, 64); }
  uint64_t file_bytes() const;

  static uint64_t up_to(uint64_t bytes, uint64_t multiple) {
    return (bytes + multiple - 1) / multiple * multiple;
  }
};

// The checksum of each block of a run of bytes; the last block is filled up with zeros.
// Thread safety: none.
class BlockChecksums {
 public:
  void add(std::string_view bytes);
  // Nothing more comes.
  std::vector<uint32_t> finish();

 private:
  std::vector<uint32_t> checksums_;
  uint32_t crc_ = 0;  // of the open block
  uint64_t filled_ = 0;
};

std::string encode_identity(const TextIdentity& identity);
// Nothing: none was written, or it is damaged, which means no more than that the text must be read
// to be known.
std::optional<TextIdentity> decode_identity(std::string_view index, const IndexLayout& layout);

std::string encode_trailer(const IndexLayout& layout, std::string_view checksums);
// Checks all that is not in a block. Errors: DataLoss (says what is wrong, but not with which
// file), Unimplemented (of a later version).
IndexLayout decode_trailer(std::string_view index);

}  // namespace cohort::internal
