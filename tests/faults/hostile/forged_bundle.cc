#include "forged_bundle.h"

#include <fstream>

#include "cohort/core/bytes/varint.h"
#include "cohort/core/files/crc32c.h"
#include "cohort/train/bundle/table.h"

namespace cohort::faults {
namespace {

using internal::WireWriter;

constexpr const char* kGraphKey = "_CHECKPOINTABLE_OBJECT_GRAPH";
constexpr std::string_view kMagic = "\x57\xfb\x80\x8b\x24\x75\x47\xdb";

std::string fixed32(uint32_t value) {
  std::string bytes;
  for (int i = 0; i < 4; ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

std::string child(uint32_t node, std::string_view name) {
  return WireWriter().varint(1, node).bytes(2, name).str();
}

std::string value_node(const std::string& name) {
  const std::string attribute =
      WireWriter().bytes(1, "VARIABLE_VALUE").bytes(3, name + "/.ATTRIBUTES/VARIABLE_VALUE").str();
  return WireWriter().bytes(2, attribute).str();
}

// Content, compression, checksum; returns its handle.
std::string append_block(std::string& file, std::string_view content, char compression) {
  std::string handle;
  internal::append_varint(handle, file.size());
  internal::append_varint(handle, content.size());
  uint32_t crc = internal::crc32c(content);
  crc = internal::crc32c(&compression, 1, crc);
  file.append(content);
  file += compression;
  file += fixed32(internal::mask_crc(crc));
  return handle;
}

}  // namespace

std::string Entry::encode() const {
  WireWriter dimensions;
  for (const int64_t length : shape) {
    dimensions.bytes(2, WireWriter().varint(1, static_cast<uint64_t>(length)).str());
  }
  WireWriter out;
  out.varint(1, static_cast<uint64_t>(type)).bytes(2, dimensions.str()).varint(3, shard);
  out.varint(4, offset).varint(5, size).fixed32(6, crc);
  for (const std::string& one : slices) out.bytes(7, one);
  return out.str();
}

std::string slice(const std::vector<std::pair<int64_t, int64_t>>& extents) {
  WireWriter out;
  for (const auto& [start, length] : extents) {
    out.bytes(1, WireWriter()
                     .varint(1, static_cast<uint64_t>(start))
                     .varint(2, static_cast<uint64_t>(length))
                     .str());
  }
  return out.str();
}

std::string sound_graph(std::string_view extra) {
  const std::string root = WireWriter()
                               .bytes(1, child(1, "a"))
                               .bytes(1, child(2, "b"))
                               .bytes(1, child(3, "save_counter"))
                               .str();
  return WireWriter()
      .bytes(1, root + std::string(extra))
      .bytes(1, value_node("a"))
      .bytes(1, value_node("b"))
      .bytes(1, value_node("save_counter"))
      .str();
}

ForgedBundle::ForgedBundle() {
  header.varint(1, 1).bytes(3, WireWriter().varint(1, 1).str());
  const std::string four(12, '\0');
  add("a/.ATTRIBUTES/VARIABLE_VALUE", {.shape = {1}}, four.substr(0, 4));
  add("b/.ATTRIBUTES/VARIABLE_VALUE", {.shape = {3}}, four);
  add("save_counter/.ATTRIBUTES/VARIABLE_VALUE", {.type = 9}, four.substr(0, 8));
  set_graph(sound_graph());
}

Entry& ForgedBundle::add(const std::string& key, Entry entry, std::string_view bytes) {
  entry.offset = data.size();
  entry.size = bytes.size();
  entry.crc = internal::mask_crc(internal::crc32c(bytes));
  data.append(bytes);
  return entries[key] = std::move(entry);
}

// The length, its checksum, the text; the entry's checksum has the length as a number.
Entry& ForgedBundle::add_string(const std::string& key, std::string_view text) {
  std::string bytes;
  internal::append_varint(bytes, text.size());
  const std::string length = fixed32(static_cast<uint32_t>(text.size()));
  uint32_t crc = internal::crc32c(length);
  const std::string checksum = fixed32(internal::mask_crc(crc));
  bytes.append(checksum).append(text);
  Entry& entry = add(key, {.type = 7}, bytes);
  crc = internal::crc32c(checksum, crc);
  entry.crc = internal::mask_crc(internal::crc32c(text, crc));
  return entry;
}

void ForgedBundle::set_graph(std::string_view graph) { add_string(kGraphKey, graph); }

void ForgedBundle::write(const std::string& prefix) const {
  std::map<std::string, std::string> table = {{"", header.str()}};
  for (const auto& [key, entry] : entries) table.emplace(key, entry.encode());
  write_file(prefix + ".index", internal::format_table(table));
  write_file(prefix + ".data-00000-of-00001", data);
}

std::string index_of_block(std::string_view block, char compression) {
  const std::string no_restarts(4, '\0');
  std::string file;
  const std::string handle = append_block(file, block, compression);
  const std::string metaindex = append_block(file, no_restarts, 0);
  const std::string last_key(64, '\xff');
  const std::string index = append_block(file, block_entry(0, last_key, handle) + no_restarts, 0);
  std::string footer = metaindex + index;
  footer.resize(40, '\0');
  return file.append(footer).append(kMagic);
}

std::string block_entry(uint64_t shared, std::string_view rest, std::string_view value) {
  std::string bytes;
  internal::append_varint(bytes, shared);
  internal::append_varint(bytes, rest.size());
  internal::append_varint(bytes, value.size());
  return bytes.append(rest).append(value);
}

void write_file(const std::string& path, std::string_view bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace cohort::faults
