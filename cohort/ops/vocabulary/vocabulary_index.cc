#include "cohort/ops/vocabulary/vocabulary_index.h"

#include <algorithm>
#include <utility>

#include "cohort/core/bytes/fingerprint.h"
#include "cohort/core/error.h"
#include "cohort/core/files/crc32c.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

IndexLayout layout_of(std::string_view bytes, const std::string& path) {
  const auto with_path = [&](const Error& error) {
    return str("the vocabulary's index ", quoted(path), " cannot be used: ", error.what());
  };
  try {
    return decode_trailer(bytes);
  } catch (const DataLossError& error) {
    throw DataLossError(with_path(error));
  } catch (const UnimplementedError& error) {
    throw UnimplementedError(with_path(error));
  }
}

uint64_t load64(const char* at) {
  uint64_t number = 0;
  std::memcpy(&number, at, sizeof number);
  return number;
}

}  // namespace

CheckedBytes::CheckedBytes(std::string_view bytes, const char* checksums, std::string path)
    : bytes_(bytes),
      checksums_(checksums),
      path_(std::move(path)),
      checked_(new std::atomic<uint64_t>[bytes.size() / kIndexBlock / 64 + 1]()) {}

void CheckedBytes::check(uint64_t block) const {
  uint32_t expected = 0;
  std::memcpy(&expected, checksums_ + block * 4, 4);
  const uint32_t found = mask_crc(crc32c(bytes_.substr(block * kIndexBlock, kIndexBlock)));
  if (found != expected) {
    throw DataLossError(str("the vocabulary's index ", quoted(path_), " is damaged in the ",
                            kIndexBlock, " bytes from byte ", block * kIndexBlock,
                            " on; remove it, and it is built anew"));
  }
  checked_[block / 64].fetch_or(uint64_t{1} << (block % 64), std::memory_order_relaxed);
}

VocabularyIndex::VocabularyIndex(std::string_view bytes, std::string path, Hash hash)
    : path_(std::move(path)),
      layout_(layout_of(bytes, path_)),
      format_(layout_.entry()),
      entries_at_(layout_.entries_at()),
      pilots_at_(layout_.pilots_at()),
      checksums_(bytes.data() + layout_.checksums_at()),
      bytes_(bytes.substr(0, layout_.checksums_at()), checksums_, path_),
      hash_(hash != nullptr ? hash : fingerprint64) {}

// A token on its way through the steps of a lookup.
struct VocabularyIndex::Probe {
  std::string_view token;
  uint64_t hash;
  PerfectHash::Place place;
  uint64_t entry_at;
  EntryFormat::Entry entry;
  bool is_likely;
};

void VocabularyIndex::prefetch_pilot(Probe& probe) const {
  probe.hash = hash_(probe.token);
  probe.place = layout_.function.place(probe.hash);
  __builtin_prefetch(bytes_.unchecked(pilots_at_ + probe.place.bucket * 2));
}

void VocabularyIndex::prefetch_entry(Probe& probe) const {
  uint16_t pilot = 0;
  std::memcpy(&pilot, bytes_.at(pilots_at_ + probe.place.bucket * 2, 2), 2);
  const uint64_t slot = layout_.function.slot(probe.place, pilot);
  probe.entry_at = entries_at_ + slot * static_cast<uint64_t>(format_.bytes());
  __builtin_prefetch(bytes_.unchecked(probe.entry_at));
}

void VocabularyIndex::prefetch_text(Probe& probe) const {
  const auto entry_bytes = static_cast<uint64_t>(format_.bytes());
  probe.entry = format_.load(bytes_.at(probe.entry_at, entry_bytes));
  probe.is_likely = probe.entry.hash == format_.part_of(probe.place.mixed) &&
                    probe.entry.number < layout_.lines && probe.entry.offset <= layout_.text_bytes;
  if (probe.is_likely) __builtin_prefetch(bytes_.unchecked(probe.entry.offset));
}

int64_t VocabularyIndex::number_of(const Probe& probe) const {
  if (!probe.is_likely) return -1;
  if (is_at(probe.token, probe.entry.offset)) return static_cast<int64_t>(probe.entry.number);
  return layout_.twins == 0 ? -1 : find_twin(probe.token, probe.hash);
}

int64_t VocabularyIndex::find(std::string_view token) const {
  int64_t number = -1;
  find_all(&token, 1, &number);
  return number;
}

void VocabularyIndex::find_all(const std::string_view* tokens, int64_t count,
                               int64_t* numbers) const {
  if (layout_.lines == 0) return static_cast<void>(std::fill(numbers, numbers + count, -1));
  constexpr int64_t kBlock = 16;
  Probe probes[kBlock];
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t n = std::min(kBlock, count - begin);
    for (int64_t i = 0; i < n; ++i) {
      probes[i].token = tokens[begin + i];
      prefetch_pilot(probes[i]);
    }
    for (int64_t i = 0; i < n; ++i) prefetch_entry(probes[i]);
    for (int64_t i = 0; i < n; ++i) prefetch_text(probes[i]);
    for (int64_t i = 0; i < n; ++i) numbers[begin + i] = number_of(probes[i]);
  }
}

// Whether the token that begins there is this one: the same bytes, and then the token's end. What
// ends a token is in none.
bool VocabularyIndex::is_at(std::string_view token, uint64_t offset) const {
  const uint64_t left = layout_.text_bytes - offset;
  if (left == 0) return token.empty();  // a last column, without a line's end
  if (token.size() > left) return false;
  const uint64_t seen = std::min(left, token.size() + 2);
  const std::string_view found(bytes_.at(offset, seen), seen);
  if (found.substr(0, token.size()) != token) return false;
  if (std::memchr(token.data(), '\n', token.size()) != nullptr) return false;
  const bool of_column = layout_.column.index != TokenColumn::kWholeLine;
  const char delimiter = layout_.column.delimiter;
  if (of_column && token.find(delimiter) != token.npos) return false;
  const std::string_view end = found.substr(token.size());
  if (end.empty() || end[0] == '\n') return token.empty() || token.back() != '\r';
  if (of_column && end[0] == delimiter) return true;
  return end[0] == '\r' && (end.size() == 1 || end[1] == '\n');
}

int64_t VocabularyIndex::find_twin(std::string_view token, uint64_t hash) const {
  for (uint64_t i = 0; i < layout_.twins; ++i) {
    Twin twin;
    std::memcpy(&twin, bytes_.at(layout_.twins_at() + i * sizeof twin, sizeof twin), sizeof twin);
    if (twin.hash == hash && twin.offset <= layout_.text_bytes && is_at(token, twin.offset)) {
      return static_cast<int64_t>(twin.number);
    }
  }
  return -1;
}

// Block by block: a long search touches what it has to.
std::string_view VocabularyIndex::line_at(uint64_t offset) const {
  for (uint64_t end = offset; end < layout_.text_bytes;) {
    const uint64_t block_end = std::min((end / kIndexBlock + 1) * kIndexBlock, layout_.text_bytes);
    const char* from = bytes_.at(end, block_end - end);
    if (const void* found = std::memchr(from, '\n', block_end - end)) {
      const auto length =
          static_cast<uint64_t>(static_cast<const char*>(found) - bytes_.unchecked(offset));
      return {bytes_.unchecked(offset), length};
    }
    end = block_end;
  }
  return {bytes_.unchecked(offset), layout_.text_bytes - offset};
}

// The offset of the last line up to this one that is written down.
uint64_t VocabularyIndex::sample(int64_t number) const {
  const uint64_t sample = static_cast<uint64_t>(number) / kLinesPerSample;
  return load64(bytes_.at(layout_.lines_at() + sample * 8, 8));
}

uint64_t VocabularyIndex::line_offset(int64_t number) const {
  const auto line = static_cast<uint64_t>(number);
  uint64_t offset = sample(number);
  for (uint64_t i = 0; i < line % kLinesPerSample && offset < layout_.text_bytes; ++i) {
    offset += line_at(offset).size() + 1;
  }
  if (offset >= layout_.text_bytes) {
    throw DataLossError(str("the vocabulary's index ", quoted(path_), " has no line ", line + 1));
  }
  return offset;
}

std::string_view VocabularyIndex::token(int64_t number) const {
  return token_of_line(line_at(line_offset(number)), layout_.column).value_or("");
}

void VocabularyIndex::tokens_at(const int64_t* numbers, int64_t count,
                                std::string_view* tokens) const {
  constexpr int64_t kBlock = 16;
  constexpr uint64_t kCacheLine = 64,
                     kLines = 3;  // of the text that are fetched; most need no more
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t n = std::min(kBlock, count - begin);
    const auto for_each = [&](auto&& visit) {
      for (int64_t i = begin; i < begin + n; ++i) {
        if (numbers[i] >= 0 && numbers[i] < size()) visit(i);
      }
    };
    for_each([&](int64_t i) {
      const uint64_t at = static_cast<uint64_t>(numbers[i]) / kLinesPerSample * 8;
      __builtin_prefetch(bytes_.unchecked(layout_.lines_at() + at));
    });
    for_each([&](int64_t i) {
      const uint64_t offset = std::min(sample(numbers[i]), layout_.text_bytes);
      for (uint64_t line = 0; line < kLines; ++line) {
        __builtin_prefetch(bytes_.unchecked(offset + line * kCacheLine));
      }
    });
    for_each([&](int64_t i) { tokens[i] = token(numbers[i]); });
  }
}

std::vector<std::string_view> VocabularyIndex::tokens() const {
  std::vector<std::string_view> tokens;
  tokens.reserve(layout_.lines);
  for (uint64_t offset = 0; offset < layout_.text_bytes;) {
    const std::string_view line = line_at(offset);
    tokens.push_back(token_of_line(line, layout_.column).value_or(""));
    offset += line.size() + 1;
  }
  return tokens;
}

std::string_view VocabularyIndex::text() const { return {bytes_.unchecked(0), layout_.text_bytes}; }

void VocabularyIndex::check_all() const { bytes_.at(0, layout_.checksums_at()); }

}  // namespace cohort::internal
