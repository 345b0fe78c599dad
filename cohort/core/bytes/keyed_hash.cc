// SipHash keeps four words, into which it mixes the bytes eight at a time: two rounds for each word
// of them, and four at the end.
#include "cohort/core/bytes/keyed_hash.h"

#include <bit>
#include <cstddef>
#include <cstring>

namespace cohort::internal {
namespace {

class SipState {
 public:
  // The constants are the ASCII text "somepseudorandomlygeneratedbytes".
  explicit SipState(const HashKey& key)
      : a_(key.first ^ 0x736f6d6570736575),
        b_(key.second ^ 0x646f72616e646f6d),
        c_(key.first ^ 0x6c7967656e657261),
        d_(key.second ^ 0x7465646279746573) {}

  void add(uint64_t word) {
    d_ ^= word;
    mix();
    mix();
    a_ ^= word;
  }

  uint64_t finish() {
    c_ ^= 0xff;
    for (int round = 0; round < 4; ++round) mix();
    return a_ ^ b_ ^ c_ ^ d_;
  }

 private:
  void mix() {
    a_ += b_;
    b_ = std::rotl(b_, 13) ^ a_;
    a_ = std::rotl(a_, 32);
    c_ += d_;
    d_ = std::rotl(d_, 16) ^ c_;
    a_ += d_;
    d_ = std::rotl(d_, 21) ^ a_;
    c_ += b_;
    b_ = std::rotl(b_, 17) ^ c_;
    c_ = std::rotl(c_, 32);
  }

  uint64_t a_, b_, c_, d_;
};

}  // namespace

uint64_t keyed_hash64(std::string_view bytes, const HashKey& key) {
  static_assert(std::endian::native == std::endian::little);
  SipState state(key);
  const char* next = bytes.data();
  size_t left = bytes.size();
  for (; left >= sizeof(uint64_t); next += sizeof(uint64_t), left -= sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, next, sizeof(word));
    state.add(word);
  }
  // The last word has the bytes that are left, and the length in its highest byte.
  uint64_t last = uint64_t{bytes.size()} << 56;
  for (size_t i = 0; i < left; ++i) last |= uint64_t{static_cast<unsigned char>(next[i])} << 8 * i;
  state.add(last);
  return state.finish();
}

}  // namespace cohort::internal
