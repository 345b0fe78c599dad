// hostile_checkpoints DIR: writes the checkpoints DIR/NAME/ckpt that an attacker might, and prints
// what a restore of each must end with: "NAME DATA_LOSS".
//
// All checksums hold: what is wrong is what the files say.
#include <filesystem>
#include <functional>
#include <iostream>
#include <limits>
#include <random>

#include "cohort/train/bundle/ordered_code.h"
#include "forged_bundle.h"

namespace {

using cohort::faults::block_entry;
using cohort::faults::Entry;
using cohort::faults::ForgedBundle;
using cohort::faults::index_of_block;
using cohort::faults::slice;
using cohort::faults::sound_graph;
using cohort::faults::write_file;
using cohort::internal::WireWriter;

constexpr int64_t kMostInt64 = std::numeric_limits<int64_t>::max();
constexpr uint64_t kMostUint64 = std::numeric_limits<uint64_t>::max();
constexpr size_t kMebibyte = size_t{1} << 20;
constexpr uint64_t kTebibyte = uint64_t{1} << 40;

struct Case {
  const char* name;
  const char* expected;
  std::function<void(const std::string& prefix)> write;
};

// A sound checkpoint after `spoil`.
std::function<void(const std::string&)> spoilt(std::function<void(ForgedBundle&)> spoil) {
  return [spoil = std::move(spoil)](const std::string& prefix) {
    ForgedBundle bundle;
    spoil(bundle);
    bundle.write(prefix);
  };
}

// A sound checkpoint with another index.
std::function<void(const std::string&)> with_index(std::function<std::string()> index) {
  return [index = std::move(index)](const std::string& prefix) {
    ForgedBundle().write(prefix);
    write_file(prefix + ".index", index());
  };
}

std::string repeated(std::string_view piece, size_t times) {
  std::string bytes;
  bytes.reserve(piece.size() * times);
  for (size_t i = 0; i < times; ++i) bytes += piece;
  return bytes;
}

std::string noise(size_t size) {
  std::string bytes(size, '\0');
  std::mt19937_64 random(1);
  for (size_t i = 0; i + 8 <= size; i += 8) {
    const uint64_t word = random();
    std::copy_n(reinterpret_cast<const char*>(&word), 8, bytes.data() + i);
  }
  return bytes;
}

// A data file of a tebibyte that takes no room on the disk, all of it the entry's.
std::function<void(const std::string&)> sparse(std::function<Entry*(ForgedBundle&)> choose) {
  return [choose = std::move(choose)](const std::string& prefix) {
    ForgedBundle bundle;
    Entry* entry = choose(bundle);
    entry->size = kTebibyte - entry->offset;
    bundle.write(prefix);
    std::filesystem::resize_file(prefix + ".data-00000-of-00001", kTebibyte);
  };
}

std::vector<Case> tensors() {
  return {
      {"sound", "restored", spoilt([](ForgedBundle&) {})},
      {"huge_dimensions", "DATA_LOSS", spoilt([](ForgedBundle& b) {
         b.a().shape = {int64_t{1} << 40, int64_t{1} << 20};
       })},
      {"product_overflows_to_zero", "DATA_LOSS", spoilt([](ForgedBundle& b) {
         b.a().shape = {int64_t{1} << 32, int64_t{1} << 32};
         b.a().size = 0;
       })},
      {"product_overflows_to_four", "DATA_LOSS", spoilt([](ForgedBundle& b) {
         b.a().shape = {kMostInt64, 2, 2};
       })},
      {"negative_dimension", "DATA_LOSS", spoilt([](ForgedBundle& b) { b.a().shape = {-1}; })},
      {"two_negative_dimensions", "DATA_LOSS", spoilt([](ForgedBundle& b) {
         b.a().shape = {-1, -1};
       })},
      {"a_million_dimensions", "DATA_LOSS",
       spoilt([](ForgedBundle& b) { b.a().shape.assign(1'000'000, 1); })},
      {"offset_past_end", "DATA_LOSS", spoilt([](ForgedBundle& b) { b.a().offset = kTebibyte; })},
      {"offset_wraps", "DATA_LOSS",
       spoilt([](ForgedBundle& b) { b.a().offset = kMostUint64 - 3; })},
      {"size_2_63", "DATA_LOSS", spoilt([](ForgedBundle& b) {
         b.a().shape = {int64_t{1} << 61};
         b.a().size = uint64_t{1} << 63;
       })},
      {"size_wraps", "DATA_LOSS", spoilt([](ForgedBundle& b) {
         b.a().shape = {int64_t{1} << 61};
         b.a().size = kMostUint64 - 3;
         b.a().offset = 8;
       })},
      {"unknown_dtype", "INVALID_ARGUMENT", spoilt([](ForgedBundle& b) { b.a().type = 99; })},
      {"negative_dtype", "INVALID_ARGUMENT", spoilt([](ForgedBundle& b) { b.a().type = -1; })},
      {"a_tebibyte_that_is_not_there", "DATA_LOSS", spoilt([](ForgedBundle& b) {
         b.a().shape = {int64_t{1} << 38};
         b.a().size = kTebibyte;
       })},
  };
}

std::vector<Case> shards() {
  const auto header = [](uint64_t shards) { return WireWriter().varint(1, shards); };
  return {
      {"no_shards", "DATA_LOSS", spoilt([=](ForgedBundle& b) { b.header = header(0); })},
      {"shards_2_40", "DATA_LOSS", spoilt([=](ForgedBundle& b) { b.header = header(kTebibyte); })},
      {"missing_shards", "NOT_FOUND", spoilt([=](ForgedBundle& b) { b.header = header(99'999); })},
      {"shard_beyond_the_last", "DATA_LOSS", spoilt([](ForgedBundle& b) { b.a().shard = 1; })},
      {"shard_2_40", "DATA_LOSS", spoilt([](ForgedBundle& b) { b.a().shard = kTebibyte; })},
      {"for_later_readers", "UNIMPLEMENTED", spoilt([=](ForgedBundle& b) {
         b.header = header(1).bytes(3, WireWriter().varint(2, 1000).str());
       })},
      {"big_endian", "UNIMPLEMENTED",
       spoilt([=](ForgedBundle& b) { b.header = header(1).varint(2, 1); })},
  };
}

// Parts of a tensor "p" of shape [4].
void add_parts(ForgedBundle& bundle, const std::vector<std::pair<int64_t, int64_t>>& parts) {
  Entry whole{.shape = {4}};
  for (const auto& [start, length] : parts) {
    whole.slices.push_back(slice({{start, length}}));
    const std::string key = cohort::internal::slice_key("p", {{start}, {length}});
    const size_t bytes = length > 0 && length < 100 ? static_cast<size_t>(length) * 4 : 4;
    bundle.add(key, {.shape = {length}}, std::string(bytes, '\0'));
  }
  bundle.entries["p"] = whole;
}

std::vector<Case> slices() {
  return {
      {"slice_outside", "DATA_LOSS", spoilt([](ForgedBundle& b) {
         add_parts(b, {{0, 2}, {3, 2}});
       })},
      {"slice_start_overflows", "DATA_LOSS", spoilt([](ForgedBundle& b) {
         add_parts(b, {{kMostInt64, 2}, {0, 2}});
       })},
      {"slice_of_negative_length", "DATA_LOSS", spoilt([](ForgedBundle& b) {
         add_parts(b, {{0, -5}});
       })},
      {"slices_do_not_cover", "DATA_LOSS", spoilt([](ForgedBundle& b) {
         add_parts(b, {{0, 2}});
       })},
      {"slices_are_missing", "DATA_LOSS", spoilt([](ForgedBundle& b) {
         b.entries["p"] = {.shape = {4}, .slices = {slice({{0, 4}})}};
       })},
      {"a_million_slices", "DATA_LOSS", spoilt([](ForgedBundle& b) {
         b.entries["p"] = {.shape = {4}};
         b.entries["p"].slices.assign(1'000'000, slice({{0, 4}}));
       })},
      {"slices_of_slices", "DATA_LOSS", spoilt([](ForgedBundle& b) {
         add_parts(b, {{0, 4}});
         b.entries.begin()->second.slices = {slice({{0, 4}})};
       })},
  };
}

std::vector<Case> graphs() {
  const auto child = [](uint64_t node) {
    return WireWriter().bytes(1, WireWriter().varint(1, node).bytes(2, "x").str()).str();
  };
  return {
      {"cyclic_graph", "restored",
       spoilt([=](ForgedBundle& b) { b.set_graph(sound_graph(child(0))); })},
      {"child_out_of_range", "DATA_LOSS",
       spoilt([=](ForgedBundle& b) { b.set_graph(sound_graph(child(4))); })},
      {"child_2_32", "DATA_LOSS",
       spoilt([=](ForgedBundle& b) { b.set_graph(sound_graph(child(uint64_t{1} << 32))); })},
      {"four_million_children", "DATA_LOSS", spoilt([](ForgedBundle& b) {
         b.set_graph(sound_graph(repeated(std::string_view("\x0a\0", 2), 4 << 20)));
       })},
      {"four_million_objects", "DATA_LOSS", spoilt([](ForgedBundle& b) {
         b.set_graph(sound_graph() + repeated(std::string_view("\x0a\0", 2), 4 << 20));
       })},
      {"a_chain_of_objects", "restored", spoilt([=](ForgedBundle& b) {
         std::string graph = sound_graph(child(4));
         for (uint64_t node = 5; node < 100'000; ++node) {
           graph += WireWriter().bytes(1, child(node)).str();
         }
         b.set_graph(graph + WireWriter().bytes(1, "").str());
       })},
      {"graph_of_noise", "DATA_LOSS", spoilt([](ForgedBundle& b) { b.set_graph(noise(4096)); })},
      {"empty_graph", "DATA_LOSS", spoilt([](ForgedBundle& b) { b.set_graph(""); })},
      {"no_graph", "NOT_FOUND",
       spoilt([](ForgedBundle& b) { b.entries.erase("_CHECKPOINTABLE_OBJECT_GRAPH"); })},
      {"graph_of_numbers", "DATA_LOSS",
       spoilt([](ForgedBundle& b) { b.entries["_CHECKPOINTABLE_OBJECT_GRAPH"] = b.a(); })},
      {"values_that_are_not_there", "DATA_LOSS",
       spoilt([](ForgedBundle& b) { b.entries.erase("a/.ATTRIBUTES/VARIABLE_VALUE"); })},
      {"a_tebibyte_of_strings", "DATA_LOSS", spoilt([](ForgedBundle& b) {
         Entry& graph = b.entries.at("_CHECKPOINTABLE_OBJECT_GRAPH");
         graph.size = kTebibyte;
       })},
      {"strings_2_62", "DATA_LOSS", spoilt([](ForgedBundle& b) {
         b.add("s", {.type = 7, .shape = {int64_t{1} << 62}}, noise(64));
       })},
      {"strings_longer_than_their_file", "DATA_LOSS", spoilt([](ForgedBundle& b) {
         const std::string lengths = repeated("\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 2);
         b.add("s", {.type = 7, .shape = {2}}, lengths + noise(64));
       })},
      {"a_graph_in_a_sparse_tebibyte", "DATA_LOSS",
       sparse([](ForgedBundle& b) { return &b.entries.at("_CHECKPOINTABLE_OBJECT_GRAPH"); })},
      {"strings_in_a_sparse_tebibyte", "RESOURCE_EXHAUSTED",
       sparse([](ForgedBundle& b) { return &b.add_string("s", "text"); })},
  };
}

std::vector<Case> indexes() {
  const std::string one_restart("\0\0\0\0\1\0\0\0", 8);
  return {
      {"empty_index", "DATA_LOSS", with_index([] { return std::string(); })},
      {"index_of_noise", "DATA_LOSS", with_index([] { return noise(100 * kMebibyte); })},
      {"a_block_of_noise", "DATA_LOSS",
       with_index([] { return index_of_block(noise(100 * kMebibyte)); })},
      {"a_block_of_zeros", "DATA_LOSS",
       with_index([] { return index_of_block(std::string(100 * kMebibyte, '\0')); })},
      {"two_to_the_thirty_restarts", "DATA_LOSS",
       with_index([] { return index_of_block(std::string("\0\0\0\x40", 4)); })},
      {"compressed_block", "UNIMPLEMENTED",
       with_index([=] { return index_of_block(one_restart, 1); })},
      {"no_header", "DATA_LOSS",
       with_index([=] { return index_of_block(block_entry(0, "key", "value") + one_restart); })},
      {"two_million_tiny_entries", "DATA_LOSS", with_index([=] {
         std::string block = block_entry(0, "", "");
         for (uint32_t key = 0; key < 2'000'000; ++key) {
           const char bytes[] = {static_cast<char>(key >> 16), static_cast<char>(key >> 8),
                                 static_cast<char>(key)};
           block += block_entry(0, std::string_view(bytes, 3), "");
         }
         return index_of_block(block + one_restart);
       })},
      {"keys_that_share_a_mebibyte", "DATA_LOSS", with_index([=] {
         std::string block = block_entry(0, "", WireWriter().varint(1, 1).str());
         block += block_entry(0, std::string(kMebibyte, 'k'), "");
         for (int i = 0; i < 50'000; ++i) block += block_entry(kMebibyte, "z", "");
         return index_of_block(block + one_restart);
       })},
      {"a_sparse_tebibyte_of_index", "DATA_LOSS",
       [](const std::string& prefix) {
         ForgedBundle().write(prefix);
         std::filesystem::resize_file(prefix + ".index", kTebibyte);
       }},
  };
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: hostile_checkpoints DIR\n";
    return 64;
  }
  for (const auto& group : {tensors(), shards(), slices(), graphs(), indexes()}) {
    for (const Case& one : group) {
      const std::string folder = std::string(argv[1]) + "/" + one.name;
      std::filesystem::create_directories(folder);
      one.write(folder + "/ckpt");
      std::cout << one.name << ' ' << one.expected << '\n';
    }
  }
  return 0;
}
