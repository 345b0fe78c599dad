// Values out of a fuzzer's bytes: few bytes decide much, and any bytes mean something.
//
//   InputReader in(bytes);
//   const uint64_t rank = in.number(4);        // 0 to 4
//   const std::string name(in.bytes(20));      // at most 20 bytes
//   if (in.flag()) ...
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace cohort::fuzz {

// At the end of the bytes every value is 0, false or empty.
class InputReader {
 public:
  explicit InputReader(std::string_view bytes) : left_(bytes) {}

  bool empty() const { return left_.empty(); }
  bool flag() { return number(1) == 1; }

  // 0 to `most`, out of as many bytes as that takes.
  uint64_t number(uint64_t most) {
    uint64_t value = 0;
    for (uint64_t reach = most; reach > 0; reach >>= 8) value = value << 8 | byte();
    return most == UINT64_MAX ? value : value % (most + 1);
  }

  // Any number; most of them close to 0, a power of two or the end of the range, where errors live.
  uint64_t any_number() {
    const uint64_t kind = number(7);
    if (kind == 0) return number(UINT64_MAX);
    if (kind <= 3) return number(255);
    const uint64_t power = uint64_t{1} << number(63);
    const uint64_t step = number(15);
    return kind <= 5 ? power + step : uint64_t{0} - power + step;
  }

  std::string_view bytes(uint64_t most) {
    const std::string_view taken = left_.substr(0, number(most));
    left_.remove_prefix(taken.size());
    return taken;
  }

 private:
  uint8_t byte() {
    if (left_.empty()) return 0;
    const auto value = static_cast<uint8_t>(left_.front());
    left_.remove_prefix(1);
    return value;
  }

  std::string_view left_;
};

}  // namespace cohort::fuzz
