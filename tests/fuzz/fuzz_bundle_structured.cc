// Checkpoints whose files are whole, each checksum of the index included, and whose content is
// anything: tensors as they should be, tensors of which a field is wrong, and tensors of which
// nothing is right.
#include <map>
#include <string>
#include <vector>

#include "cohort/core/bytes/varint.h"
#include "cohort/core/bytes/wire.h"
#include "cohort/core/files/crc32c.h"
#include "cohort/train/bundle/bundle_entry.h"
#include "cohort/train/bundle/ordered_code.h"
#include "cohort/train/bundle/table.h"
#include "cohort/train/objects/object_graph.h"
#include "tests/fuzz/bundle_check.h"

namespace {

using cohort::fuzz::InputReader;
using cohort::fuzz::require;
using cohort::internal::BundleEntry;
using cohort::internal::BundleType;
using cohort::internal::SimulatedFileSystem;
using cohort::internal::WireWriter;
using cohort::train::TensorSlice;

constexpr size_t kMostTensors = 24;
constexpr int kTypes[] = {1, 2, 3, 4, 5, 6, 8, 9, 10, 14, 17, 18, 19, 22, 23};

// What the files of a checkpoint are made of, and whether anything of it may be refused.
class Checkpoint {
 public:
  explicit Checkpoint(InputReader& in) : in_(in) {}

  void make() {
    make_header();
    for (size_t i = 0; i < kMostTensors && !in_.empty(); ++i) {
      switch (in_.number(7)) {
        case 0:
          add_anything();
          break;
        case 1:
          add_words();
          break;
        case 2:
          add_graph();
          break;
        case 3:
        case 4:
          add_partitioned();
          break;
        default:
          add_numbers();
      }
    }
  }

  void write(SimulatedFileSystem& files) const {
    files.set_content("ckpt.index", cohort::internal::format_table(table_));
    files.set_content("ckpt.data-00000-of-00001", data_);
    files.set_content("ckpt.data-00001-of-00002", data_);
  }

  // Nothing was made wrong on purpose.
  bool sound() const { return sound_; }

 private:
  std::string name() {
    std::string result(1, static_cast<char>('a' + in_.number(15)));
    return in_.number(7) == 0 ? result.append(in_.bytes(40)) : result;
  }

  bool wrong() {
    const bool wrong = in_.number(15) == 15;
    sound_ = sound_ && !wrong;
    return wrong;
  }

  void make_header() {
    if (!wrong()) {
      second_file_ = in_.flag();
      table_[""] = cohort::internal::format_bundle_header(second_file_ ? 2 : 1);
      return;
    }
    WireWriter header;
    header.varint(1, in_.any_number());
    if (in_.flag()) header.varint(2, in_.number(2));
    WireWriter version;
    if (in_.flag()) version.varint(1, in_.any_number());
    if (in_.flag()) version.varint(2, in_.any_number());
    table_[""] = header.bytes(3, version.str()).str();
  }

  std::vector<int64_t> shape() {
    std::vector<int64_t> dimensions(in_.number(4));
    for (int64_t& size : dimensions) size = static_cast<int64_t>(in_.number(5));
    return dimensions;
  }

  BundleEntry new_entry(BundleType type) const {
    BundleEntry entry;
    entry.type = type;
    entry.shard = second_file_ ? 1 : 0;
    return entry;
  }

  BundleEntry new_numbers() {
    BundleEntry entry = new_entry(static_cast<BundleType>(kTypes[in_.number(14)]));
    entry.shape = shape();
    return entry;
  }

  // Its bytes are appended to the data, or are some that are there already.
  void place(BundleEntry& entry) {
    entry.size = cohort::internal::num_elements(entry.shape, "") * size_of(entry.type);
    if (in_.flag() && entry.size <= data_.size()) {
      entry.offset = in_.number(data_.size() - entry.size);
    } else {
      entry.offset = data_.size();
      data_.append(in_.bytes(entry.size));
      while (data_.size() < entry.offset + entry.size) data_ += static_cast<char>(data_.size());
    }
    const auto bytes = std::string_view(data_).substr(entry.offset, entry.size);
    entry.crc = cohort::internal::mask_crc(cohort::internal::crc32c(bytes));
  }

  void damage(BundleEntry& entry) {
    switch (in_.number(7)) {
      case 0:
        entry.type = static_cast<BundleType>(in_.any_number());
        break;
      case 1:
        entry.shard = static_cast<uint32_t>(in_.any_number());
        break;
      case 2:
        entry.offset = in_.any_number();
        break;
      case 3:
        entry.size = in_.any_number();
        break;
      case 4:
        entry.crc ^= 1;
        break;
      case 5:
        entry.shape.push_back(static_cast<int64_t>(in_.any_number()));
        break;
      case 6:
        if (!entry.slices.empty()) damage(entry.slices[in_.number(entry.slices.size() - 1)].slice);
        break;
      default:
        if (!entry.shape.empty()) entry.shape[0] = static_cast<int64_t>(in_.any_number());
    }
  }

  void damage(TensorSlice& slice) {
    auto& numbers = in_.flag() ? slice.start : slice.length;
    if (!numbers.empty()) {
      numbers[in_.number(numbers.size() - 1)] = static_cast<int64_t>(in_.any_number());
    }
  }

  void add(const std::string& key, BundleEntry entry) {
    if (wrong()) damage(entry);
    std::string value = cohort::internal::format_bundle_entry(entry);
    if (wrong()) value.append(in_.bytes(30));
    if (!table_.emplace(key, std::move(value)).second) sound_ = false;
  }

  void add_numbers() {
    BundleEntry entry = new_numbers();
    place(entry);
    add(name(), std::move(entry));
  }

  // Cut along one axis; or into any boxes at all.
  void add_partitioned() {
    const std::string whole_name = name();
    BundleEntry whole = new_numbers();
    for (const TensorSlice& slice : in_.number(3) == 3 ? boxes(whole.shape) : cuts(whole.shape)) {
      BundleEntry part = new_entry(whole.type);
      part.shape = slice.length;
      place(part);
      TensorSlice written = slice;
      for (size_t d = 0; d < slice.start.size(); ++d) {
        const bool full = slice.start[d] == 0 && slice.length[d] == whole.shape[d];
        if (full && in_.flag()) written.length[d] = -1;  // as TensorFlow has it
      }
      const std::string key = cohort::internal::slice_key(whole_name, written);
      whole.slices.push_back({written, key});
      if (!wrong()) add(key, std::move(part));
    }
    if (whole.slices.empty()) place(whole);
    add(whole_name, std::move(whole));
  }

  std::vector<TensorSlice> cuts(const std::vector<int64_t>& shape) {
    const TensorSlice all = {std::vector<int64_t>(shape.size(), 0), shape};
    if (shape.empty()) return {all};
    const size_t axis = in_.number(shape.size() - 1);
    std::vector<TensorSlice> parts;
    for (int64_t start = 0; start < shape[axis];) {
      TensorSlice part = all;
      part.start[axis] = start;
      part.length[axis] =
          1 + static_cast<int64_t>(in_.number(static_cast<uint64_t>(shape[axis] - start - 1)));
      start += part.length[axis];
      parts.push_back(std::move(part));
    }
    return parts;
  }

  std::vector<TensorSlice> boxes(const std::vector<int64_t>& shape) {
    sound_ = false;
    std::vector<TensorSlice> parts(in_.number(6));
    for (TensorSlice& part : parts) part = cohort::fuzz::box_within(shape, in_);
    return parts;
  }

  void add_words() {
    const std::string key = name();
    std::vector<std::string> words(in_.number(4));
    for (std::string& word : words) word = in_.bytes(20);
    add_strings(key, words);
  }

  void add_strings(const std::string& key, const std::vector<std::string>& texts) {
    BundleEntry entry = new_entry(BundleType::kString);
    entry.shape = {static_cast<int64_t>(texts.size())};
    entry.offset = data_.size();
    for (const std::string& text : texts) {
      const uint64_t length = wrong() ? in_.any_number() : text.size();
      cohort::internal::append_varint(data_, length);
      entry.crc = cohort::internal::crc32c(&length, length >> 32 == 0 ? 4 : 8, entry.crc);
    }
    const uint32_t masked = cohort::internal::mask_crc(entry.crc);
    std::string rest;
    for (int i = 0; i < 4; ++i) rest += static_cast<char>(masked >> (8 * i));
    for (const std::string& text : texts) rest += text;
    entry.crc = cohort::internal::mask_crc(cohort::internal::crc32c(rest, entry.crc));
    data_ += rest;
    entry.size = data_.size() - entry.offset;
    add(key, std::move(entry));
  }

  void add_graph() {
    const uint64_t nodes = 1 + in_.number(5);
    const auto reference = [&] { return wrong() ? in_.any_number() : in_.number(nodes - 1); };
    WireWriter graph;
    for (uint64_t i = 0; i < nodes; ++i) {
      WireWriter node;
      for (uint64_t child = in_.number(3); child > 0; --child) {
        node.bytes(1, WireWriter().varint(1, reference()).bytes(2, in_.bytes(8)).str());
      }
      if (in_.flag()) node.bytes(2, WireWriter().bytes(1, "VARIABLE_VALUE").bytes(3, "a").str());
      if (in_.flag()) {
        node.bytes(3, WireWriter().varint(1, reference()).varint(3, reference()).str());
      }
      if (wrong()) node.bytes(static_cast<uint32_t>(1 + in_.number(5)), in_.bytes(10));
      graph.bytes(1, node.str());
    }
    add_strings(cohort::internal::kObjectGraphKey, {graph.str()});
  }

  void add_anything() {
    sound_ = false;
    BundleEntry entry;
    entry.type = static_cast<BundleType>(in_.any_number());
    entry.shape.resize(in_.number(6));
    for (int64_t& size : entry.shape) size = static_cast<int64_t>(in_.any_number());
    entry.shard = static_cast<uint32_t>(in_.number(7) == 0 ? in_.any_number() : in_.number(1));
    entry.offset = in_.any_number();
    entry.size = in_.any_number();
    entry.crc = static_cast<uint32_t>(in_.number(UINT32_MAX));
    entry.slices.resize(in_.number(3));
    for (BundleEntry::Slice& part : entry.slices) {
      for (uint64_t d = in_.number(6); d > 0; --d) {
        part.slice.start.push_back(static_cast<int64_t>(in_.any_number()));
        part.slice.length.push_back(static_cast<int64_t>(in_.any_number()));
      }
    }
    table_.emplace(name(), cohort::internal::format_bundle_entry(entry));
  }

  InputReader& in_;
  std::map<std::string, std::string> table_;
  std::string data_;
  bool second_file_ = false;
  bool sound_ = true;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  InputReader in({reinterpret_cast<const char*>(data), size});
  Checkpoint checkpoint(in);
  checkpoint.make();
  SimulatedFileSystem files;
  checkpoint.write(files);
  InputReader boxes({reinterpret_cast<const char*>(data), size});
  const cohort::Code code = cohort::fuzz::check_bundle(files, "ckpt", boxes);
  require(code == cohort::Code::kOk || !checkpoint.sound(), "what is as it should be is read");
  return 0;
}
