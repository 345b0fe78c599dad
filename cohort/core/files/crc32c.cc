#include "cohort/core/files/crc32c.h"

#include <isa-l.h>

#include <algorithm>
#include <cstring>

namespace cohort::internal {
namespace {

#if defined(__x86_64__)
// Up to here the library's dispatch and alignment cost more than its three streams gain.
constexpr size_t kShort = 256;

bool has_instruction() {
  static const bool has = __builtin_cpu_supports("sse4.2") != 0;
  return has;
}

template <class Word>
Word load(const unsigned char* from) {
  Word word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

__attribute__((target("sse4.2"))) uint32_t short_state(const unsigned char* bytes, size_t length,
                                                       uint32_t state) {
  uint64_t wide = state;
  for (; length >= 8; length -= 8, bytes += 8) {
    wide = __builtin_ia32_crc32di(wide, load<uint64_t>(bytes));
  }
  state = static_cast<uint32_t>(wide);
  if (length >= 4) {
    state = __builtin_ia32_crc32si(state, load<uint32_t>(bytes));
    bytes += 4;
    length -= 4;
  }
  for (; length > 0; --length) state = __builtin_ia32_crc32qi(state, *bytes++);
  return state;
}

// So many buffers of kShort bytes at most, side by side as far as the shortest goes.
constexpr size_t kLanes = 4;
__attribute__((target("sse4.2"))) void short_crcs(const std::string_view* buffers, uint32_t* crcs) {
  const unsigned char* bytes[kLanes];
  uint64_t states[kLanes];
  size_t shortest = kShort;
  for (size_t i = 0; i < kLanes; ++i) {
    bytes[i] = reinterpret_cast<const unsigned char*>(buffers[i].data());
    states[i] = ~uint32_t{0};
    shortest = std::min(shortest, buffers[i].size());
  }
  size_t done = 0;
  for (; done + 8 <= shortest; done += 8) {
    for (size_t i = 0; i < kLanes; ++i) {
      states[i] = __builtin_ia32_crc32di(states[i], load<uint64_t>(bytes[i] + done));
    }
  }
  for (size_t i = 0; i < kLanes; ++i) {
    crcs[i] =
        ~short_state(bytes[i] + done, buffers[i].size() - done, static_cast<uint32_t>(states[i]));
  }
}

__attribute__((target("sse4.2"))) void number_crcs(std::span<const uint64_t> numbers,
                                                   uint32_t* crcs) {
  for (size_t i = 0; i < numbers.size(); ++i) {
    crcs[i] = ~static_cast<uint32_t>(__builtin_ia32_crc32di(~uint32_t{0}, numbers[i]));
  }
}
#endif

uint32_t long_crc(const void* data, size_t length, uint32_t crc) {
  constexpr size_t kMost = size_t{1} << 30;  // the library counts in int
  auto* bytes = const_cast<unsigned char*>(static_cast<const unsigned char*>(data));
  uint32_t state = ~crc;
  while (length > 0) {
    const size_t block = std::min(length, kMost);
    state = crc32_iscsi(bytes, static_cast<int>(block), state);
    bytes += block;
    length -= block;
  }
  return ~state;
}

}  // namespace

void crc32c_each(std::span<const uint64_t> numbers, uint32_t* crcs) {
#if defined(__x86_64__)
  if (has_instruction()) return number_crcs(numbers, crcs);
#endif
  for (size_t i = 0; i < numbers.size(); ++i) crcs[i] = long_crc(&numbers[i], sizeof numbers[i], 0);
}

void crc32c_each(std::span<const std::string_view> buffers, uint32_t* crcs) {
  size_t i = 0;
#if defined(__x86_64__)
  const auto is_short = [](std::string_view buffer) { return buffer.size() < kShort; };
  for (; has_instruction() && i + kLanes <= buffers.size(); i += kLanes) {
    const auto lanes = buffers.subspan(i, kLanes);
    if (std::all_of(lanes.begin(), lanes.end(), is_short)) {
      short_crcs(lanes.data(), crcs + i);
    } else if (std::none_of(lanes.begin(), lanes.end(), is_short)) {
      for (size_t lane = 0; lane < kLanes; ++lane) {
        crcs[i + lane] = long_crc(lanes[lane].data(), lanes[lane].size(), 0);
      }
    } else {
      for (size_t lane = 0; lane < kLanes; ++lane) crcs[i + lane] = crc32c(lanes[lane]);
    }
  }
#endif
  for (; i < buffers.size(); ++i) crcs[i] = crc32c(buffers[i]);
}

uint32_t crc32c(const void* data, size_t length, uint32_t crc) {
#if defined(__x86_64__)
  if (length < kShort && has_instruction()) {
    return ~short_state(static_cast<const unsigned char*>(data), length, ~crc);
  }
#endif
  return long_crc(data, length, crc);
}

}  // namespace cohort::internal
