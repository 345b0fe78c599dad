#include "cohort/data/iteration/state.h"

#include <algorithm>
#include <limits>
#include <new>
#include <type_traits>

#include "cohort/core/bytes/varint.h"
#include "cohort/core/error.h"

// The serialized form, all integers little endian:
//
//   "CDIS"  version:u8  node  checksum:u64 (FNV-1a of everything before it)
//   node  := count:varint entry*
//   entry := name:bytes kind:u8 value,  value := varint (zigzag) | bytes | node
//   bytes := length:varint byte*
namespace cohort::data {
namespace {

using internal::append_signed_varint;
using internal::append_varint;
using internal::str;

constexpr std::string_view kMagic = "CDIS";
constexpr char kVersion = 1;
constexpr size_t kHeaderBytes = 5;
constexpr size_t kChecksumBytes = 8;
enum Kind : uint8_t { kInt = 0, kBytes = 1, kNode = 2 };

uint64_t checksum(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (unsigned char byte : bytes) hash = (hash ^ byte) * 0x100000001b3u;
  return hash;
}

void append_bytes(std::string& out, std::string_view bytes) {
  append_varint(out, bytes.size());
  out += bytes;
}

}  // namespace

// What is left to read, and how much was there.
struct IteratorState::Reader {
  std::string_view left;
  size_t total;

  [[noreturn]] void fail(const std::string& what) const {
    throw DataLossError(
        str("iterator state: ", what, " at byte ", kHeaderBytes + total - left.size()));
  }
  uint64_t number() {
    try {
      return internal::take_varint(left);
    } catch (const DataLossError&) {
      fail("a damaged number");
    }
  }
  int64_t signed_number() {
    try {
      return internal::take_signed_varint(left);
    } catch (const DataLossError&) {
      fail("a damaged number");
    }
  }
  uint8_t byte() {
    if (left.empty()) fail("the end comes too early");
    const auto value = static_cast<uint8_t>(left.front());
    left.remove_prefix(1);
    return value;
  }
  std::string_view bytes() {
    const uint64_t length = number();
    if (length > left.size()) {
      fail(str("a length of ", length, " with only ", left.size(), " bytes left"));
    }
    const std::string_view value = left.substr(0, length);
    left.remove_prefix(length);
    return value;
  }
};

// Children end one after another: each within its parent would exhaust the stack.
IteratorState::~IteratorState() {
  const auto is_child = [](const auto& entry) {
    return std::holds_alternative<Child>(entry.second);
  };
  if (std::none_of(entries_.begin(), entries_.end(), is_child)) return;
  thread_local std::vector<Entries>* ending = nullptr;
  std::vector<Entries> own;
  const bool is_first = ending == nullptr;
  if (is_first) ending = &own;
  try {
    ending->push_back(std::move(entries_));
  } catch (const std::bad_alloc&) {  // these few end here
  }
  if (!is_first) return;
  while (!own.empty()) {
    const Entries last = std::move(own.back());
    own.pop_back();
  }
  ending = nullptr;
}

void IteratorState::set_int(std::string name, int64_t value) {
  entries_.emplace_back(std::move(name), value);
}
void IteratorState::set_bytes(std::string name, std::string value) {
  set_bytes(std::move(name), std::make_shared<const std::string>(std::move(value)));
}
void IteratorState::set_bytes(std::string name, Bytes value) {
  entries_.emplace_back(std::move(name), std::move(value));
}
void IteratorState::set_child(std::string name, IteratorState value) {
  set_child(std::move(name), std::make_shared<const IteratorState>(std::move(value)));
}
void IteratorState::set_child(std::string name, Child value) {
  entries_.emplace_back(std::move(name), std::move(value));
}

bool IteratorState::has(std::string_view name) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [name](const auto& entry) { return entry.first == name; });
}

const IteratorState::Value& IteratorState::value(std::string_view name) const {
  for (const auto& [key, value] : entries_) {
    if (key == name) return value;
  }
  throw DataLossError(str("iterator state: there is no entry '", name, "'"));
}

int64_t IteratorState::get_int(std::string_view name) const {
  if (const auto* found = std::get_if<int64_t>(&value(name))) return *found;
  throw DataLossError(str("iterator state: entry '", name, "' is not a number"));
}

int64_t IteratorState::get_int(std::string_view name, int64_t min, int64_t max) const {
  const int64_t found = get_int(name);
  if (found >= min && found <= max) return found;
  throw DataLossError(
      str("iterator state: entry '", name, "' is ", found, ", not in [", min, ", ", max, "]"));
}

const IteratorState::Bytes& IteratorState::shared_bytes(std::string_view name) const {
  if (const auto* found = std::get_if<Bytes>(&value(name))) return *found;
  throw DataLossError(str("iterator state: entry '", name, "' is not bytes"));
}

const std::string& IteratorState::get_bytes(std::string_view name) const {
  return *shared_bytes(name);
}

const IteratorState::Child& IteratorState::shared_child(std::string_view name) const {
  if (const auto* found = std::get_if<Child>(&value(name))) return *found;
  throw DataLossError(str("iterator state: entry '", name, "' is not a state"));
}

const IteratorState& IteratorState::child(std::string_view name) const {
  return *shared_child(name);
}

void IteratorState::write(std::string& out) const {
  struct Open {
    const IteratorState& state;
    size_t written = 0;
  };
  std::vector<Open> open;  // from this to the innermost
  const auto begin = [&](const IteratorState& state) {
    append_varint(out, state.entries_.size());
    open.push_back({state});
  };
  begin(*this);
  while (!open.empty()) {
    Open& last = open.back();
    if (last.written == last.state.entries_.size()) {
      open.pop_back();
      continue;
    }
    const auto& [name, value] = last.state.entries_[last.written++];
    append_bytes(out, name);
    out += static_cast<char>(value.index());
    if (const auto* number = std::get_if<int64_t>(&value)) {
      append_signed_varint(out, *number);
    } else if (const auto* bytes = std::get_if<Bytes>(&value)) {
      append_bytes(out, **bytes);
    } else {
      begin(*std::get<Child>(value));
    }
  }
}

std::string IteratorState::serialize() const {
  std::string out(kMagic);
  out += kVersion;
  write(out);
  uint64_t hash = checksum(out);
  for (size_t i = 0; i < kChecksumBytes; ++i, hash >>= 8) out += static_cast<char>(hash & 0xff);
  return out;
}

IteratorState IteratorState::read(Reader& reader) {
  struct Open {
    std::string name;  // in the state around it
    uint64_t left;     // entries; a claim, and so no reason to reserve memory
    IteratorState state = {};
  };
  std::vector<Open> open;  // from the outermost to the one that is being read
  open.push_back({"", reader.number()});
  while (true) {
    Open& last = open.back();
    if (last.left == 0) {
      Open whole = std::move(last);
      open.pop_back();
      if (open.empty()) return std::move(whole.state);
      open.back().state.set_child(std::move(whole.name), std::move(whole.state));
      continue;
    }
    --last.left;
    std::string name(reader.bytes());
    switch (reader.byte()) {
      case kInt:
        last.state.set_int(std::move(name), reader.signed_number());
        break;
      case kBytes:
        last.state.set_bytes(std::move(name), std::string(reader.bytes()));
        break;
      case kNode:
        open.push_back({std::move(name), reader.number()});
        break;
      default:
        reader.fail("an entry of unknown kind");
    }
  }
}

IteratorState IteratorState::parse(std::string_view bytes) {
  if (bytes.size() < kHeaderBytes + kChecksumBytes || !bytes.starts_with(kMagic)) {
    throw DataLossError(
        str("iterator state: these ", bytes.size(), " bytes are not a state of an iterator"));
  }
  if (bytes[kMagic.size()] != kVersion) {
    throw UnimplementedError(str("iterator state: version ", +bytes[kMagic.size()],
                                 " is not known to this library, which reads version ", +kVersion));
  }
  const std::string_view content = bytes.substr(0, bytes.size() - kChecksumBytes);
  uint64_t stored = 0;
  for (size_t i = kChecksumBytes; i-- > 0;) {
    stored = stored << 8 | static_cast<unsigned char>(bytes[content.size() + i]);
  }
  if (stored != checksum(content)) {
    throw DataLossError(str("iterator state: the checksum of these ", bytes.size(),
                            " bytes is wrong: they are truncated or damaged"));
  }
  Reader reader{content.substr(kHeaderBytes), content.size() - kHeaderBytes};
  IteratorState state = read(reader);
  if (!reader.left.empty()) reader.fail("bytes after the end of the state");
  return state;
}

bool IteratorState::operator==(const IteratorState& other) const {
  std::vector<std::pair<const IteratorState*, const IteratorState*>> left = {{this, &other}};
  const auto same = [&left](const auto& a, const auto& b) {
    if (a.first != b.first || a.second.index() != b.second.index()) return false;
    if (const auto* bytes = std::get_if<Bytes>(&a.second)) {
      return **bytes == *std::get<Bytes>(b.second);
    }
    if (const auto* child = std::get_if<Child>(&a.second)) {
      left.emplace_back(child->get(), std::get<Child>(b.second).get());
      return true;
    }
    return a.second == b.second;
  };
  while (!left.empty()) {
    const auto [a, b] = left.back();
    left.pop_back();
    if (!std::equal(a->entries_.begin(), a->entries_.end(), b->entries_.begin(), b->entries_.end(),
                    same)) {
      return false;
    }
  }
  return true;
}

}  // namespace cohort::data
