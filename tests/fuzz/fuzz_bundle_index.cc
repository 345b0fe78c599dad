// Any bytes as a checkpoint's index, beside data that is always the same.
//
// The first byte says whether the rest is taken as it is ('0') or gets the checksums of its blocks
// put right ('1'), which leads behind them.
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "cohort/core/bytes/varint.h"
#include "cohort/core/files/crc32c.h"
#include "cohort/train/bundle/bundle_entry.h"
#include "cohort/train/bundle/bundle_writer.h"
#include "cohort/train/bundle/table.h"
#include "cohort/train/objects/object_graph.h"
#include "tests/fuzz/bundle_check.h"

// libFuzzer's; programs that only replay have none.
extern "C" [[gnu::weak]] size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

using cohort::fuzz::InputReader;
using cohort::internal::BundleType;
using cohort::internal::SimulatedFileSystem;

constexpr char kRepaired = '1';
constexpr size_t kDataBytes = 16384;
constexpr size_t kFooterBytes = 48;
constexpr size_t kTrailerBytes = 5;

// A checkpoint's data, then a pattern: whatever an index says, there are bytes to read.
std::string make_data() {
  cohort::internal::ObjectGraph graph;
  graph.nodes.resize(3);
  graph.nodes[0].children = {{"model", 1}, {"w", 2}};
  graph.nodes[1].children = {{"w", 2}, {"parent", 0}};
  graph.nodes[2].attributes = {{"VARIABLE_VALUE", "w", "w/.ATTRIBUTES/VARIABLE_VALUE"}};
  const std::string text = format_object_graph(graph);
  const std::string_view words[] = {"one", "", "three"};
  const std::string numbers = "0123456789abcdefghijklmnopqrstuvwxyzABCD";

  SimulatedFileSystem files;
  cohort::internal::BundleWriter bundle(files, "ckpt");
  bundle.add("a", {BundleType::kFloat32, {2, 5}}, numbers);
  bundle.add("empty", {BundleType::kFloat64, {0, 3}}, "");
  bundle.add_strings("words", {3}, words);
  bundle.add_slice("part", {BundleType::kUint8, {2, 4}}, {{0, 0}, {2, 1}}, "04");
  bundle.add_slice("part", {BundleType::kUint8, {2, 4}}, {{0, 1}, {2, 3}}, "123567");
  const std::string_view graphs[] = {text};
  bundle.add_strings(cohort::internal::kObjectGraphKey, {}, graphs);
  bundle.finish();
  std::string data = files.content("/ckpt.data-00000-of-00001");
  while (data.size() < kDataBytes) data += static_cast<char>(data.size() * 131 >> 3);
  return data;
}

const std::string& fixed_data() {
  static const std::string data = make_data();
  return data;
}

// [offset, offset + size) of what a handle names, if it lies in the file.
struct Block {
  size_t offset = 0;
  size_t size = 0;
  bool fits = false;
};

Block take_block(std::string_view& handle, size_t file_size) {
  try {
    const uint64_t offset = cohort::internal::take_varint(handle);
    const uint64_t size = cohort::internal::take_varint(handle);
    if (file_size < kTrailerBytes || offset > file_size - kTrailerBytes) return {};
    return {offset, size, size <= file_size - kTrailerBytes - offset};
  } catch (const cohort::DataLossError&) {
    return {};
  }
}

void repair_block(std::string& table, const Block& block) {
  if (!block.fits) return;
  const std::string_view covered = std::string_view(table).substr(block.offset, block.size + 1);
  const uint32_t crc = cohort::internal::mask_crc(cohort::internal::crc32c(covered));
  for (size_t i = 0; i < 4; ++i) {
    table[block.offset + block.size + 1 + i] = static_cast<char>(crc >> (8 * i));
  }
}

// The blocks that the entries of the index block name.
std::vector<Block> data_blocks(const std::string& table, const Block& index) {
  std::vector<Block> blocks;
  if (!index.fits) return blocks;
  std::string_view left = std::string_view(table).substr(index.offset, index.size);
  try {
    while (left.size() > 8) {
      cohort::internal::take_varint(left);
      const uint64_t key = cohort::internal::take_varint(left);
      const uint64_t value = cohort::internal::take_varint(left);
      if (key > left.size() || value > left.size() - key) break;
      std::string_view handle = left.substr(key, value);
      blocks.push_back(take_block(handle, table.size()));
      left.remove_prefix(key + value);
    }
  } catch (const cohort::DataLossError&) {  // what has no shape needs no checksum
  }
  return blocks;
}

std::string repaired(std::string table) {
  if (table.size() < kFooterBytes) return table;
  std::string_view handles = std::string_view(table).substr(table.size() - kFooterBytes);
  const Block metaindex = take_block(handles, table.size());
  const Block index = take_block(handles, table.size());
  for (const Block& block : data_blocks(table, index)) repair_block(table, block);
  repair_block(table, metaindex);
  repair_block(table, index);
  return table;
}

// One key or value of a table is changed, and the table written anew. Nothing if it was no table.
std::string with_changed_entry(std::string_view table, uint32_t seed) {
  std::map<std::string, std::string> entries;
  try {
    for (const auto& [key, value] : cohort::internal::parse_table(table, "")) {
      entries.emplace(key, value);
    }
  } catch (const cohort::Error&) {
    return "";
  }
  if (entries.empty()) return "";
  auto chosen = std::next(entries.begin(), static_cast<ptrdiff_t>(seed / 4 % entries.size()));
  auto [key, value] = std::pair(chosen->first, chosen->second);
  std::string& changed = seed % 4 == 0 ? key : value;
  const size_t size = changed.size();
  changed.resize(size + 64);
  changed.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(changed.data()), size, size + 64));
  if (seed % 4 != 1) entries.erase(chosen);  // else the old one stays, beside or below the new one
  entries.insert_or_assign(std::move(key), std::move(value));
  return cohort::internal::format_table(entries);
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  if (size > 1 && seed % 2 == 0) {
    const std::string_view table(reinterpret_cast<const char*>(data) + 1, size - 1);
    const std::string changed = with_changed_entry(repaired(std::string(table)), seed / 2);
    if (!changed.empty() && changed.size() < max_size) {
      std::memcpy(data + 1, changed.data(), changed.size());
      return changed.size() + 1;
    }
  }
  return LLVMFuzzerMutate(data, size, max_size);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::string index(bytes.substr(std::min<size_t>(1, size)));
  if (bytes.starts_with(kRepaired)) index = repaired(std::move(index));
  SimulatedFileSystem files;
  files.set_content("ckpt.index", index);
  files.set_content("ckpt.data-00000-of-00001", fixed_data());
  files.set_content("ckpt.data-00001-of-00002", fixed_data());
  InputReader boxes(bytes.substr(bytes.size() / 2));
  cohort::fuzz::check_bundle(files, "ckpt", boxes);
  return 0;
}
