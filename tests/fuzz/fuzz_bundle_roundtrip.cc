// Tensors of any names, types, shapes and partitions come back as they were written; and whatever
// byte of the files is then changed or cut off, it is noticed.
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cohort/train/bundle/bundle_reader.h"
#include "cohort/train/bundle/bundle_writer.h"
#include "tests/fuzz/bundle_check.h"

namespace {

using cohort::Code;
using cohort::InvalidArgumentError;
using cohort::fuzz::InputReader;
using cohort::fuzz::require;
using cohort::internal::BundleReader;
using cohort::internal::BundleType;
using cohort::internal::BundleWriter;
using cohort::internal::SimulatedFileSystem;
using cohort::train::TensorSlice;

constexpr size_t kMostTensors = 24;
constexpr int kTypes[] = {1, 2, 3, 4, 5, 6, 8, 9, 10, 14, 17, 18, 19, 22, 23};

struct Saved {
  BundleType type = BundleType::kString;
  std::vector<int64_t> shape;
  std::string bytes;
  std::vector<std::string> strings;
};

template <class Call>
bool is_accepted(const Call& call) {
  try {
    call();
    return true;
  } catch (const InvalidArgumentError&) {
    return false;
  }
}

class RoundTrip {
 public:
  explicit RoundTrip(InputReader& in) : in_(in) {}

  // Whether there is a checkpoint.
  bool write() {
    BundleWriter bundle(files_, "dir/ckpt");
    for (size_t i = in_.number(kMostTensors); i > 0; --i) {
      switch (in_.number(3)) {
        case 0:
          add_strings(bundle);
          break;
        case 1:
          add_partitioned(bundle);
          break;
        default:
          add_numbers(bundle);
      }
    }
    const bool accepted = is_accepted([&] { bundle.finish(); });
    require(accepted == complete_, "partitions are accepted if and only if they are complete");
    return accepted;
  }

  void write_again() {
    const auto saved = std::move(saved_);
    saved_.clear();
    partitioned_.clear();
    complete_ = true;
    if (!write()) saved_ = saved;  // the old one is still there
  }

  void compare() {
    const BundleReader bundle(files_, "dir/ckpt");
    require(bundle.entries().size() == saved_.size(), "as many tensors as were written");
    for (const auto& [name, saved] : saved_) {
      const auto& entry = bundle.entry(name);
      require(entry.type == saved.type && entry.shape == saved.shape, "types and shapes");
      if (saved.type == BundleType::kString) {
        require(bundle.read_strings(name) == saved.strings, "strings come back");
        continue;
      }
      std::string bytes(saved.bytes.size(), '\x5a');
      bundle.read(name, bytes.data());
      require(bytes == saved.bytes, "numbers come back");
    }
    require(check() == Code::kOk, "what was written is sound");
  }

  // One byte is changed, or the end of a file is cut off.
  void damage() {
    const std::vector<std::string> paths = files_.file_paths();
    require(paths.size() == 2, "an index, a data file, and nothing else");
    const std::string& path = paths[in_.number(1)];
    std::string bytes = files_.content(path);
    if (bytes.empty()) return;  // all tensors are empty
    const size_t place = in_.number(bytes.size() - 1);
    const uint64_t flip = in_.number(255);
    if (flip == 0) {
      bytes.resize(place);
    } else {
      bytes[place] = static_cast<char>(bytes[place] ^ static_cast<char>(flip));
    }
    files_.set_content(path, bytes);
    require(check() != Code::kOk, "damage is noticed");
  }

 private:
  Code check() {
    InputReader boxes = in_;
    return cohort::fuzz::check_bundle(files_, "dir/ckpt", boxes);
  }

  std::string name() { return std::string(in_.bytes(in_.number(9) == 9 ? 600 : 5)); }

  std::vector<int64_t> shape() {
    std::vector<int64_t> dimensions(in_.number(4));
    for (int64_t& size : dimensions) size = static_cast<int64_t>(in_.number(5));
    return dimensions;
  }

  Saved numbers() {
    Saved saved;
    saved.type = static_cast<BundleType>(kTypes[in_.number(14)]);
    saved.shape = shape();
    const uint64_t bytes = cohort::internal::num_elements(saved.shape, "") * size_of(saved.type);
    saved.bytes = in_.bytes(bytes);
    while (saved.bytes.size() < bytes) saved.bytes += static_cast<char>(saved.bytes.size());
    return saved;
  }

  // Whether the writer may take it: not without a name, and not twice.
  bool good(const std::string& name) const {
    return !name.empty() && name[0] != '\0' && saved_.count(name) == 0;
  }

  void add_numbers(BundleWriter& bundle) {
    const std::string key = name();
    Saved saved = numbers();
    if (in_.number(15) == 15) saved.bytes += 'x';
    const bool fits =
        saved.bytes.size() == cohort::internal::num_elements(saved.shape, "") * size_of(saved.type);
    const bool accepted = is_accepted([&] {
      bundle.add(key, {saved.type, saved.shape}, saved.bytes);
    });
    require(accepted == (good(key) && fits), "accepted if and only if it has a place");
    if (accepted) saved_[key] = std::move(saved);
  }

  void add_strings(BundleWriter& bundle) {
    const std::string key = name();
    Saved saved;
    saved.shape = {static_cast<int64_t>(in_.number(4))};
    for (int64_t i = 0; i < saved.shape[0]; ++i) saved.strings.emplace_back(in_.bytes(300));
    const std::vector<std::string_view> views(saved.strings.begin(), saved.strings.end());
    const bool accepted = is_accepted([&] { bundle.add_strings(key, saved.shape, views); });
    require(accepted == good(key), "accepted if and only if it has a place");
    if (accepted) saved_[key] = std::move(saved);
  }

  void add_partitioned(BundleWriter& bundle) {
    const std::string key = name();
    const bool new_name = good(key);
    if (partitioned_.count(key) > 0) return;  // more parts of the same tensor: fine, and no news
    const Saved saved = numbers();
    const std::vector<TensorSlice> parts =
        in_.number(3) == 3 ? boxes(saved.shape) : cuts(saved.shape);
    std::vector<int> times(cohort::internal::num_elements(saved.shape, ""));
    bool any = false;
    for (const TensorSlice& part : parts) {
      std::string bytes;
      const std::vector<size_t> places = cohort::fuzz::places_of(saved.shape, part);
      for (const size_t place : places) {
        bytes += saved.bytes.substr(place * size_of(saved.type), size_of(saved.type));
      }
      if (in_.number(15) == 15) bytes += 'x';
      if (!is_accepted([&] { bundle.add_slice(key, {saved.type, saved.shape}, part, bytes); })) {
        continue;
      }
      require(new_name, "no part of what cannot be");
      any = true;
      for (const size_t place : places) ++times[place];
    }
    if (!any) return;
    saved_[key] = saved;
    partitioned_.insert(key);
    for (const int count : times) complete_ = complete_ && count == 1;
  }

  std::vector<TensorSlice> cuts(const std::vector<int64_t>& shape) {
    if (shape.empty()) return {};
    const size_t axis = in_.number(shape.size() - 1);
    std::vector<TensorSlice> parts;
    for (int64_t start = 0; start < shape[axis];) {
      TensorSlice part = {std::vector<int64_t>(shape.size(), 0), shape};
      part.start[axis] = start;
      part.length[axis] =
          1 + static_cast<int64_t>(in_.number(static_cast<uint64_t>(shape[axis] - start - 1)));
      start += part.length[axis];
      parts.push_back(std::move(part));
    }
    return parts;
  }

  std::vector<TensorSlice> boxes(const std::vector<int64_t>& shape) {
    std::vector<TensorSlice> parts(in_.number(6));
    for (TensorSlice& part : parts) part = cohort::fuzz::box_within(shape, in_);
    return parts;
  }

  InputReader& in_;
  SimulatedFileSystem files_ = with_directory();
  std::map<std::string, Saved> saved_;
  std::set<std::string> partitioned_;  // names of those
  bool complete_ = true;

  static SimulatedFileSystem with_directory() {
    SimulatedFileSystem files;
    files.make_directories("dir");
    return files;
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  InputReader in({reinterpret_cast<const char*>(data), size});
  RoundTrip trip(in);
  if (!trip.write()) return 0;
  trip.compare();
  if (in.flag()) {
    trip.write_again();
    trip.compare();
  }
  trip.damage();
  return 0;
}
