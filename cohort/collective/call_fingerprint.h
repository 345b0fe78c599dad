// A 64-bit number that stands for everything in which the calls of two tasks can differ.
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>

namespace cohort::collective {

// FNV-1a over what is added, in its order; never 0, which means that there is nothing to compare.
class CallFingerprint {
 public:
  void add(std::string_view text) {
    for (const char c : text) add_byte(static_cast<unsigned char>(c));
    add_byte(0xff);  // so that "ab", "c" is not "a", "bc"
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

}  // namespace cohort::collective
