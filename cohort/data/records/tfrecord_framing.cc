#include "cohort/data/records/tfrecord_framing.h"

#include <bit>
#include <cstring>
#include <span>
#include <string>

#include "cohort/core/error.h"
#include "cohort/core/files/crc32c.h"

namespace cohort::internal {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr size_t kTFRecordLengthBytes = 8;
constexpr size_t kOverhead = kTFRecordHeaderBytes + kTFRecordFooterBytes;

template <class Number>
Number load(const char* from) {
  Number value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

bool holds(const char* data, size_t length, const char* masked_crc) {
  return unmask_crc(load<uint32_t>(masked_crc)) == crc32c(data, length);
}

// Files of other kinds that are often taken for TFRecord files.
std::string guess(const Framing::Input& input) {
  if (input.position.offset > 0) return "";
  if (input.bytes.starts_with("\x1f\x8b")) {
    return "; the file begins as gzip does: say compression_type = \"GZIP\"";
  }
  return "; is it a TFRecord file, and not a compressed one?";
}

// Records are framed so many at a time, by lengths that nobody has checked yet, and then their
// checksums taken, which are had faster together. One of this length is the last of its run:
// framing the next would leave the cache.
constexpr size_t kTogether = 16;
constexpr uint64_t kLong = 4096;

// Records that follow one another, as far as their lengths say so.
struct Run {
  std::array<uint64_t, kTogether> lengths;
  std::array<std::string_view, kTogether> records;
  size_t size = 0;
  size_t consumed = 0;
};

// Up to kTogether from `begin` on; it ends before what is not whole.
Run frame(const Framing::Input& input, size_t begin) {
  Run run;
  size_t place = begin;
  while (run.size < kTogether) {
    const std::string_view left = input.bytes.substr(place);
    if (left.size() < kOverhead) break;
    const auto length = load<uint64_t>(left.data());
    if (length > left.size() - kOverhead) break;
    run.lengths[run.size] = length;
    run.records[run.size++] = left.substr(kTFRecordHeaderBytes, length);
    place += length + kOverhead;
    if (length >= kLong) break;
  }
  run.consumed = place - begin;
  return run;
}

// How many of the records at its front have checksums that hold.
size_t count_whole(const Run& run) {
  std::array<uint32_t, kTogether> crcs;
  crc32c_each(std::span(run.lengths).first(run.size), crcs.data());
  size_t size = 0;
  while (size < run.size &&
         unmask_crc(load<uint32_t>(run.records[size].data() - sizeof(uint32_t))) == crcs[size]) {
    ++size;
  }
  crc32c_each(std::span(run.records).first(size), crcs.data());
  size_t whole = 0;
  while (whole < size && unmask_crc(load<uint32_t>(run.records[whole].data() +
                                                   run.records[whole].size())) == crcs[whole]) {
    ++whole;
  }
  return whole;
}

class TFRecordFraming final : public Framing {
 public:
  Split split(const Input& input, std::vector<std::string_view>& records) const override {
    Split split;
    while (split.consumed < input.bytes.size()) {
      const Run run = frame(input, split.consumed);
      const size_t whole = count_whole(run);
      records.insert(records.end(), run.records.begin(), run.records.begin() + whole);
      split.indices += whole;
      if (whole == run.size) split.consumed += run.consumed;
      if (whole == run.size && run.size > 0) continue;
      if (whole < run.size && whole > 0) split.consumed = end_of(records.back(), input);
      if (records.empty()) split.needed = bytes_of_one(input);
      break;
    }
    return split;
  }

 private:
  static size_t end_of(std::string_view record, const Input& input) {
    return static_cast<size_t>(record.data() + record.size() + kTFRecordFooterBytes -
                               input.bytes.data());
  }
  // How many bytes the record at the front takes that is not whole; fails where it never will be.
  static uint64_t bytes_of_one(const Input& input) {
    const auto damage = [&](const auto&... problem) {
      input.fail(str("record ", input.position.index, " ", problem...));
    };
    const std::string_view bytes = input.bytes;
    if (input.available < kOverhead) {
      damage("is cut short: ", input.available, " bytes are left, and one takes at least ",
             kOverhead, guess(input));
    }
    if (bytes.size() < kTFRecordHeaderBytes) return kOverhead;
    if (!holds(bytes.data(), kTFRecordLengthBytes, bytes.data() + kTFRecordLengthBytes)) {
      damage("is damaged: the checksum of its length does not hold", guess(input));
    }
    const auto length = load<uint64_t>(bytes.data());
    if (length > input.available - kOverhead) {
      damage("is cut short: it has ", length, " bytes, and at most ", input.available - kOverhead,
             " are left for it");
    }
    if (bytes.size() < length + kOverhead) return length + kOverhead;
    damage("is damaged: the checksum of its ", length, " bytes does not hold");
    return 0;
  }
};

}  // namespace

std::shared_ptr<const Framing> make_tfrecord_framing() {
  return std::make_shared<TFRecordFraming>();
}

bool is_tfrecord_header(std::string_view bytes) {
  return bytes.size() == kTFRecordHeaderBytes &&
         holds(bytes.data(), kTFRecordLengthBytes, bytes.data() + kTFRecordLengthBytes);
}

std::array<char, kTFRecordHeaderBytes> tfrecord_header(std::string_view data) {
  std::array<char, kTFRecordHeaderBytes> header;
  const uint64_t length = data.size();
  std::memcpy(header.data(), &length, sizeof length);
  const uint32_t crc = mask_crc(crc32c(&length, sizeof length));
  std::memcpy(header.data() + sizeof length, &crc, sizeof crc);
  return header;
}

std::array<char, kTFRecordFooterBytes> tfrecord_footer(std::string_view data) {
  return std::bit_cast<std::array<char, kTFRecordFooterBytes>>(mask_crc(crc32c(data)));
}

}  // namespace cohort::internal
