#include "cohort/data/records/tfrecord_framing.h"

#include <bit>
#include <cstring>
#include <span>
#include <string>

#include "cohort/core/crc32c.h"
#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr size_t kLengthBytes = 8;
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

// Short records are framed so many at a time, and then their checksums taken, which are had faster
// together. A long one is checked at once: that brings the next one's length into the cache.
constexpr size_t kTogether = 16;
constexpr uint64_t kLong = 256;

// The first record whose checksum does not hold; records.size() where all do. At most kTogether.
size_t first_damaged(std::span<const std::string_view> records) {
  std::array<uint32_t, kTogether> crcs;
  crc32c_each(records, crcs.data());
  size_t i = 0;
  while (i < records.size() &&
         unmask_crc(load<uint32_t>(records[i].data() + records[i].size())) == crcs[i]) {
    ++i;
  }
  return i;
}

class TFRecordFraming final : public Framing {
 public:
  Split split(const Input& input, std::vector<std::string_view>& records) const override {
    Split split;
    for (bool more = true; more;) {
      const size_t begin = records.size();
      more = frame(input, split, records);
      const size_t whole = begin + first_damaged(std::span(records).subspan(begin));
      if (whole == records.size()) continue;
      if (whole == 0) {
        input.fail(str("record ", input.position.index, " is damaged: the checksum of its ",
                       records[0].size(), " bytes does not hold"));
      }
      records.resize(whole);
      const char* const end = records.back().data() + records.back().size() + kTFRecordFooterBytes;
      return {.consumed = static_cast<size_t>(end - input.bytes.data()), .indices = whole};
    }
    return split;
  }

 private:
  // Up to kTogether records more; false where no other can follow them.
  static bool frame(const Input& input, Split& split, std::vector<std::string_view>& records) {
    const auto damage = [&](const auto&... problem) {
      if (records.empty()) input.fail(str("record ", input.position.index, " ", problem...));
      return false;
    };
    for (size_t i = 0; i < kTogether; ++i) {
      if (split.consumed == input.bytes.size()) return false;
      const std::string_view left = input.bytes.substr(split.consumed);
      const uint64_t available = input.available - split.consumed;
      if (available < kOverhead) {
        return damage("is cut short: ", available, " bytes are left, and one takes at least ",
                      kOverhead, guess(input));
      }
      if (left.size() < kTFRecordHeaderBytes) {
        split.needed = kOverhead;
        return false;
      }
      if (!holds(left.data(), kLengthBytes, left.data() + kLengthBytes)) {
        return damage("is damaged: the checksum of its length does not hold", guess(input));
      }
      const auto length = load<uint64_t>(left.data());
      if (length > available - kOverhead) {
        return damage("is cut short: it has ", length, " bytes, and at most ",
                      available - kOverhead, " are left for it");
      }
      if (left.size() - kTFRecordHeaderBytes < length + kTFRecordFooterBytes) {
        split.needed = length + kOverhead;
        return false;
      }
      records.push_back(left.substr(kTFRecordHeaderBytes, length));
      split.consumed += length + kOverhead;
      ++split.indices;
      if (length >= kLong) break;
    }
    return true;
  }
};

}  // namespace

std::shared_ptr<const Framing> make_tfrecord_framing() {
  return std::make_shared<TFRecordFraming>();
}

bool is_tfrecord_header(std::string_view bytes) {
  return bytes.size() == kTFRecordHeaderBytes &&
         holds(bytes.data(), kLengthBytes, bytes.data() + kLengthBytes);
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
