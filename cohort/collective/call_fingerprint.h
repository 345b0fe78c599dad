// A 64-bit number that stands for everything in which the calls of two tasks can differ.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

namespace cohort::collective {

// FNV-1a over the added values, in their order. It is never 0, which means that there is nothing to
// compare.
class CallFingerprint {
 public:
  void add(std::string_view text) {
    add(text.size());  // so that "ab", "c" is not "a", "bc"
    for (const char c : text) add_byte(static_cast<unsigned char>(c));
  }
  template <class Number>
  requires std::is_integral_v<Number>
  void add(Number number) {
    const auto bits = static_cast<uint64_t>(number);
    for (int shift = 0; shift < 64; shift += 8) add_byte(bits >> shift & 0xff);
  }
  uint64_t value() const { return hash_ == 0 ? 1 : hash_; }

 private:
  void add_byte(uint64_t byte) { hash_ = (hash_ ^ byte) * 1099511628211ull; }

  uint64_t hash_ = 14695981039346656037ull;
};

// The identity of a call, whatever its place among other calls.
struct CallIdentity {
  std::string_view operation;
  std::string_view name;
  std::string_view signature;
  int root = -1;
  int64_t count = 0;
  int dtype = -1;
  std::span<const int64_t> parts = {};

  uint64_t fingerprint() const {
    CallFingerprint all;
    all.add(operation);
    all.add(name);
    all.add(signature);
    all.add(root);
    all.add(count);
    all.add(dtype);
    all.add(parts.size());
    for (const int64_t part : parts) all.add(part);
    return all.value();
  }
};

// The place of a call among those of a task.
struct CallPlace {
  int64_t generation = 0;  // of the group
  uint64_t sequence = 0;   // how many calls the group has made before
  int64_t phase = 0;       // how far the task is in its steps: 2n - 1 in step n, 2n after it

  bool operator==(const CallPlace&) const = default;
};

// The fingerprint of a call, or of a plan, at its place.
inline uint64_t placed_fingerprint(uint64_t call, const CallPlace& place) {
  CallFingerprint all;
  all.add(call);
  all.add(place.generation);
  all.add(place.sequence);
  all.add(place.phase);
  return all.value();
}

}  // namespace cohort::collective
