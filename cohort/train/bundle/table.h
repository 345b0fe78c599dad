// Sorted tables: leveldb's file format, in which TensorFlow keeps a checkpoint's index.
//
//   file    := data block* metaindex block, index block, footer
//   block   := entry* restart:u32* number of restarts:u32, compression:u8, masked crc32c:u32
//   entry   := shared:varint unshared:varint value length:varint, rest of key, value
//   footer  := metaindex handle, index handle, zeros up to 40 bytes, magic:u64
//   handle  := offset:varint size:varint            (size without compression and crc32c)
//
// Writing is leveldb's own table builder. Its reader takes memory as a file's lengths say and reads
// before a block where they overflow, so reading is ours: every length is checked first, blocks
// must follow one another without a gap, and every byte of the file counts.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace cohort::internal {

// The bytes of a table of `entries`. Errors: Internal (the builder refuses).
std::string format_table(const std::map<std::string, std::string>& entries);

struct TableEntry {
  std::string key;
  std::string_view value;  // into the bytes that were parsed
};

// All entries, in ascending order of their keys. `file` is the table's name in errors.
// Memory: twice bytes.size() and 32 MiB at most.
// Errors: DataLoss (damaged, no table, more than a table of that size can hold), Unimplemented
// (compressed blocks).
std::vector<TableEntry> parse_table(std::string_view bytes, const std::string& file);

}  // namespace cohort::internal
