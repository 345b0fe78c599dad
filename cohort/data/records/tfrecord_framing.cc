#include "cohort/data/records/tfrecord_framing.h"

#include <algorithm>
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

// The first record whose checksum does not hold; records.size() where all do.
size_t first_damaged(std::span<const std::string_view> records) {
  std::array<uint32_t, 64> crcs;
  for (size_t begin = 0; begin < records.size(); begin += crcs.size()) {
    const auto some = records.subspan(begin, std::min(crcs.size(), records.size() - begin));
    crc32c_each(some, crcs.data());
    for (size_t i = 0; i < some.size(); ++i) {
      if (unmask_crc(load<uint32_t>(some[i].data() + some[i].size())) != crcs[i]) return begin + i;
    }
  }
  return records.size();
}

class TFRecordFraming final : public Framing {
 public:
  // The checksums of the data come last: those of many short records are had faster together.
  Split split(const Input& input, std::vector<std::string_view>& records) const override {
    const Split framed = frame(input, records);
    const size_t whole = first_damaged(records);
    if (whole == records.size()) return framed;
    if (whole == 0) {
      input.fail(str("record ", input.position.index, " is damaged: the checksum of its ",
                     records[0].size(), " bytes does not hold"));
    }
    records.resize(whole);
    const char* const end = records.back().data() + records.back().size() + kTFRecordFooterBytes;
    return {.consumed = static_cast<size_t>(end - input.bytes.data()), .indices = whole};
  }

 private:
  static Split frame(const Input& input, std::vector<std::string_view>& records) {
    Split split;
    const auto damage = [&](const auto&... problem) {
      if (records.empty()) input.fail(str("record ", input.position.index, " ", problem...));
      return split;
    };
    while (split.consumed < input.bytes.size()) {
      const std::string_view left = input.bytes.substr(split.consumed);
      const uint64_t available = input.available - split.consumed;
      if (available < kOverhead) {
        return damage("is cut short: ", available, " bytes are left, and one takes at least ",
                      kOverhead, guess(input));
      }
      if (left.size() < kTFRecordHeaderBytes) {
        split.needed = kOverhead;
        return split;
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
        return split;
      }
      records.push_back(left.substr(kTFRecordHeaderBytes, length));
      split.consumed += length + kOverhead;
      ++split.indices;
    }
    return split;
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
