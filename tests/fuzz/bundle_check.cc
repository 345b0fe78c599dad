#include "tests/fuzz/bundle_check.h"

#include <cstdlib>
#include <iostream>
#include <map>
#include <optional>

#include "cohort/core/bytes/varint.h"
#include "cohort/core/files/crc32c.h"
#include "cohort/train/bundle/bundle_reader.h"
#include "cohort/train/bundle/table.h"
#include "cohort/train/objects/object_graph.h"
#include "tests/fuzz/peak_memory.h"

namespace cohort::fuzz {
namespace {

using internal::BundleEntry;
using internal::BundleReader;
using internal::BundleType;
using train::TensorSlice;

constexpr int64_t kFreeBytes = int64_t{64} << 20;
// Parts of a tensor may share their data, so that a small checkpoint has tensors of any size: only
// those are read.
constexpr uint64_t kMostTensorBytes = uint64_t{1} << 16;

// Strings by their layout: lengths, the checksum of the lengths, bytes. Nothing if it does not
// hold.
std::optional<std::vector<std::string>> strings_in(std::string_view bytes, uint64_t count,
                                                   uint32_t masked_crc) {
  std::vector<uint64_t> lengths;
  uint32_t crc = 0;
  try {
    for (uint64_t i = 0; i < count; ++i) {
      lengths.push_back(internal::take_varint(bytes));
      const bool small = lengths.back() >> 32 == 0;
      crc = internal::crc32c(&lengths.back(), small ? 4 : 8, crc);
    }
  } catch (const DataLossError&) {
    return std::nullopt;
  }
  if (bytes.size() < 4) return std::nullopt;
  uint32_t stored = 0;
  for (int i = 3; i >= 0; --i) stored = stored << 8 | static_cast<uint8_t>(bytes[i]);
  crc = internal::crc32c(bytes, crc);
  if (internal::mask_crc(crc) != masked_crc) return std::nullopt;
  bytes.remove_prefix(4);
  std::string joined;
  std::vector<std::string> strings;
  uint32_t lengths_crc = 0;
  for (const uint64_t length : lengths) {
    if (length > bytes.size()) return std::nullopt;
    strings.emplace_back(bytes.substr(0, length));
    bytes.remove_prefix(length);
    lengths_crc = internal::crc32c(&length, length >> 32 == 0 ? 4 : 8, lengths_crc);
  }
  if (!bytes.empty() || internal::mask_crc(lengths_crc) != stored) return std::nullopt;
  return strings;
}

class BundleCheck {
 public:
  BundleCheck(internal::SimulatedFileSystem& files, const std::string& prefix, InputReader& in)
      : files_(files), prefix_(prefix), in_(in) {
    for (const std::string& path : files_.file_paths()) {
      contents_.emplace(path, files_.content(path));
      most_memory_ += static_cast<int64_t>(contents_[path].size());
    }
  }

  Code run() {
    note(guarded([&] { bundle_.emplace(files_, prefix_); }));
    if (!bundle_) return result_;
    read_index();
    for (const auto& [name, entry] : bundle_->entries()) {
      require(!name.empty() && name[0] != '\0', "parts of tensors are not listed");
      check_entry(name, entry);
    }
    check_read_all();
    check_graph();
    return result_;
  }

 private:
  // The code of the error that `call` ends with, which is one that a damaged checkpoint may cause.
  template <class Call>
  Code guarded(const Call& call) const {
    const PeakMemory memory;
    Code code = Code::kOk;
    try {
      call();
    } catch (const Error& error) {
      code = error.code();
      require(code == Code::kDataLoss || code == Code::kNotFound || code == Code::kUnimplemented,
              "a damaged checkpoint's error is one of three");
      require(std::string_view(error.what()).find(prefix_) != std::string_view::npos,
              "the error names the checkpoint");
    }
    require(memory.peak_bytes() <= most_memory_, "no more memory than the files and 64 MiB");
    return code;
  }

  void note(Code code) {
    if (result_ == Code::kOk) result_ = code;
  }

  // The entries of parts, which the reader does not show.
  void read_index() {
    const std::string path = internal::bundle_index_path(prefix_);
    const auto table = internal::parse_table(contents_.at("/" + path), path);
    num_shards_ = internal::parse_bundle_header(table[0].value, path);
    for (size_t i = 1; i < table.size(); ++i) {
      if (table[i].key[0] == '\0') values_.emplace(table[i].key, table[i].value);
    }
  }

  BundleEntry part(const BundleEntry::Slice& slice) const {
    const auto found = values_.find(slice.key);
    require(found != values_.end(), "every part that is listed is there");
    return internal::parse_bundle_entry(found->second, found->first, "part", 0);
  }

  std::string_view stored_bytes(const BundleEntry& entry) const {
    const auto found =
        contents_.find("/" + internal::bundle_data_path(prefix_, entry.shard, num_shards_));
    require(found != contents_.end(), "the data file of every entry is there");
    const std::string_view file = found->second;
    require(entry.offset <= file.size() && entry.size <= file.size() - entry.offset,
            "every entry lies within its data file");
    return file.substr(entry.offset, entry.size);
  }

  bool is_sound(const BundleEntry& stored) const {
    return internal::mask_crc(internal::crc32c(stored_bytes(stored))) == stored.crc;
  }

  void check_entry(const std::string& name, const BundleEntry& entry) {
    if (entry.type == BundleType::kString) return check_strings(name, entry);
    const Code verified = guarded([&] { bundle_->verify(name); });
    note(verified);
    const uint64_t item = internal::size_of(entry.type);
    if (item == 0) {  // nobody knows how such a type is stored
      stored_bytes(entry);
      try {
        bundle_->read(name, nullptr);
        require(false, "what cannot be checked is not read");
      } catch (const InvalidArgumentError&) {
      }
      return;
    }
    bool sound = true;
    if (entry.slices.empty()) {
      require(entry.size == internal::num_elements(entry.shape, name) * item, "size is shape");
      sound = is_sound(entry);
    }
    bool readable = sound;  // an empty part has nothing to read, and a checksum nevertheless
    for (const auto& slice : entry.slices) {
      const BundleEntry stored = part(slice);
      sound = is_sound(stored) && sound;
      readable = (stored.size == 0 || is_sound(stored)) && readable;
    }
    require(sound == (verified == Code::kOk), "verified if and only if the checksums hold");
    if (internal::num_elements(entry.shape, name) <= kMostTensorBytes / item) {
      check_numbers(name, entry, readable);
      if (!sound) expected_.erase(name);
    }
  }

  void check_numbers(const std::string& name, const BundleEntry& entry, bool readable) {
    const std::string expected = assemble(entry);
    std::string bytes(expected.size(), '\x5a');
    const Code code = guarded([&] { bundle_->read(name, bytes.data()); });
    require(readable == (code == Code::kOk), "read if and only if the checksums hold");
    if (!readable) return;
    require(bytes == expected, "what is read is what the data files hold");
    expected_.emplace(name, expected);
    const TensorSlice box = box_within(entry.shape, in_);
    const uint64_t item = internal::size_of(entry.type);
    std::string wanted;
    for (const size_t place : places_of(entry.shape, box)) {
      wanted += expected.substr(place * item, item);
    }
    bytes.assign(wanted.size(), '\x5a');
    require(guarded([&] { bundle_->read_slice(name, box, bytes.data()); }) == Code::kOk,
            "parts of what can be read can be read");
    require(bytes == wanted, "a part of a tensor is that part of the whole");
  }

  // All at once what was read one by one.
  void check_read_all() {
    std::map<std::string, std::string> read;
    std::map<std::string, void*, std::less<>> wanted;
    for (const auto& [name, bytes] : expected_) {
      wanted[name] = read.emplace(name, std::string(bytes.size(), '\x5a')).first->second.data();
    }
    const Code code = guarded([&] { bundle_->read_all(wanted); });
    require((code == Code::kOk) == (result_ == Code::kOk), "all are read if and only if each is");
    if (code == Code::kOk) require(read == expected_, "all at once or one by one is the same");
  }

  // A tensor's bytes, part by part.
  std::string assemble(const BundleEntry& entry) const {
    if (entry.slices.empty()) return std::string(stored_bytes(entry));
    const uint64_t item = internal::size_of(entry.type);
    const uint64_t count = internal::num_elements(entry.shape, "whole");
    std::string bytes(count * item, '\0');
    std::vector<bool> found(count);
    for (const auto& slice : entry.slices) {
      const std::string_view stored = stored_bytes(part(slice));
      const std::vector<size_t> places = places_of(entry.shape, slice.slice);
      require(stored.size() == places.size() * item, "a part has the bytes of its box");
      for (size_t i = 0; i < places.size(); ++i) {
        require(!found[places[i]], "no element is in two parts");
        found[places[i]] = true;
        bytes.replace(places[i] * item, item, stored.substr(i * item, item));
      }
    }
    for (const bool element : found) require(element, "every element is in a part");
    return bytes;
  }

  void check_strings(const std::string& name, const BundleEntry& entry) {
    require(entry.slices.empty(), "strings are not partitioned");
    const auto expected =
        strings_in(stored_bytes(entry), internal::num_elements(entry.shape, name), entry.crc);
    const Code verified = guarded([&] { bundle_->verify(name); });
    note(verified);
    require(expected.has_value() == (verified == Code::kOk), "verified if and only if sound");
    std::vector<std::string> strings;
    const Code code = guarded([&] { strings = bundle_->read_strings(name); });
    require(code == verified, "what is verified can be read, and nothing else");
    if (expected) require(strings == *expected, "the strings are those of the data file");
  }

  void check_graph() {
    const auto found = bundle_->entries().find(internal::kObjectGraphKey);
    if (found == bundle_->entries().end() || found->second.type != BundleType::kString) return;
    std::vector<std::string> texts;
    if (guarded([&] { texts = bundle_->read_strings(found->first); }) != Code::kOk) return;
    for (const std::string& text : texts) {
      internal::ObjectGraph graph;
      const Code code = guarded([&] { graph = internal::parse_object_graph(text, prefix_); });
      note(code);
      if (code != Code::kOk) continue;
      require(!graph.nodes.empty(), "a graph has a root");
      for (const auto& node : graph.nodes) {
        for (const auto& child : node.children) {
          require(child.node < graph.nodes.size(), "no reference leads nowhere");
        }
        for (const auto& slot : node.slot_variables) {
          require(slot.original_variable < graph.nodes.size() &&
                      slot.slot_variable < graph.nodes.size(),
                  "no slot variable leads nowhere");
        }
      }
    }
  }

  internal::SimulatedFileSystem& files_;
  const std::string prefix_;
  InputReader& in_;
  std::map<std::string, std::string> contents_;  // by path
  std::map<std::string, std::string> values_;    // of the parts' entries, by key
  std::map<std::string, std::string> expected_;  // the bytes of sound tensors, by name
  int64_t most_memory_ = kFreeBytes;
  uint32_t num_shards_ = 0;
  std::optional<BundleReader> bundle_;
  Code result_ = Code::kOk;
};

}  // namespace

void require(bool holds, std::string_view property) {
  if (holds) return;
  std::cerr << "broken property: " << property << '\n';
  std::abort();
}

std::vector<size_t> places_of(const std::vector<int64_t>& shape, const TensorSlice& box) {
  for (const int64_t length : box.length) {
    if (length == 0) return {};  // however large the other dimensions are
  }
  std::vector<size_t> places = {0};
  for (size_t d = 0; d < shape.size(); ++d) {
    std::vector<size_t> next;
    for (const size_t place : places) {
      for (int64_t i = 0; i < box.length[d]; ++i) {
        next.push_back(place * static_cast<size_t>(shape[d]) +
                       static_cast<size_t>(box.start[d] + i));
      }
    }
    places = std::move(next);
  }
  return places;
}

TensorSlice box_within(const std::vector<int64_t>& shape, InputReader& in) {
  TensorSlice box;
  for (const int64_t size : shape) {
    box.start.push_back(static_cast<int64_t>(in.number(static_cast<uint64_t>(size))));
    box.length.push_back(
        static_cast<int64_t>(in.number(static_cast<uint64_t>(size - box.start.back()))));
  }
  return box;
}

Code check_bundle(internal::SimulatedFileSystem& files, const std::string& prefix,
                  InputReader& in) {
  return BundleCheck(files, prefix, in).run();
}

}  // namespace cohort::fuzz
