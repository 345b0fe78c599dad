// Checkpoints with any content whose checksums hold: what a reader believes is decided by more than
// checksums.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/bytes/wire.h"

namespace cohort::faults {

struct Entry {
  int64_t type = 1;  // float32
  std::vector<int64_t> shape = {};
  uint64_t shard = 0;
  uint64_t offset = 0;
  uint64_t size = 0;
  uint32_t crc = 0;                      // masked
  std::vector<std::string> slices = {};  // encoded: slice({{start, length}, ...})

  std::string encode() const;
};

std::string slice(const std::vector<std::pair<int64_t, int64_t>>& extents);

// A sound checkpoint of the victim's objects, to be spoilt.
struct ForgedBundle {
  ForgedBundle();

  // Appends to the data and to the index.
  Entry& add(const std::string& key, Entry entry, std::string_view bytes);
  Entry& add_string(const std::string& key, std::string_view text);
  Entry& a() { return entries.at("a/.ATTRIBUTES/VARIABLE_VALUE"); }
  // Replaces the object graph.
  void set_graph(std::string_view graph);
  // PREFIX.index and PREFIX.data-00000-of-00001.
  void write(const std::string& prefix) const;

  internal::WireWriter header;
  std::map<std::string, Entry> entries;
  std::string data;
};

// A graph whose root has the children a, b and save_counter, with their values; `extra` is appended
// to the root's node.
std::string sound_graph(std::string_view extra = "");

// An index of one data block with this content, which may be anything.
std::string index_of_block(std::string_view block, char compression = 0);
// An entry of a block: `shared` bytes of the key before, then `rest`.
std::string block_entry(uint64_t shared, std::string_view rest, std::string_view value);

void write_file(const std::string& path, std::string_view bytes);

}  // namespace cohort::faults
