#include "cohort/ops/vocabulary/index_layout.h"

#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/files/crc32c.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

constexpr char kMagic[16] = {'c', 'o', 'h', 'o', 'r', 't', '-', 'v',
                             'o', 'c', 'a', 'b', '-', 'i', 'd', 'x'};
constexpr uint32_t kVersion = 1;

// Larger than any file: sums of such numbers stay within 64 bits.
constexpr uint64_t kMostBytes = uint64_t{1} << 48;

struct Identity {
  TextIdentity of;
  uint32_t unused = 0;
  uint32_t crc = 0;  // of what comes before, masked
};
constexpr uint64_t kIdentityBytes = 64;

struct Trailer {
  uint64_t text_bytes;
  uint64_t lines;
  uint64_t twins;
  uint64_t seed;
  uint64_t parts;
  uint32_t slots_per_part;
  uint32_t buckets_per_part;
  int64_t column;
  uint32_t delimiter;
  uint32_t checksums_crc;  // masked
  uint32_t version;
  uint32_t crc;  // of what comes before and the magic, masked
  char magic[16];
};
static_assert(sizeof(Trailer) == 88 && sizeof(Identity) <= kIdentityBytes);

uint32_t crc_of(const Trailer& trailer) {
  const auto* bytes = reinterpret_cast<const char*>(&trailer);
  const uint32_t crc = crc32c(std::string_view(bytes, offsetof(Trailer, crc)));
  return mask_crc(crc32c(std::string_view(trailer.magic, sizeof trailer.magic), crc));
}

uint32_t crc_of(const Identity& identity) {
  const TextIdentity& of = identity.of;
  const uint64_t numbers[] = {of.bytes, static_cast<uint64_t>(of.modified),
                              static_cast<uint64_t>(of.changed), of.inode};
  return mask_crc(crc32c(numbers, sizeof numbers));
}

template <class T>
std::string bytes_of(const T& value, uint64_t bytes) {
  std::string text(bytes, '\0');
  std::memcpy(text.data(), &value, sizeof value);
  return text;
}

bool is_possible(const Trailer& trailer) {
  for (const uint64_t number : {trailer.text_bytes, trailer.lines, trailer.twins}) {
    if (number > kMostBytes) return false;
  }
  const Wide slots = Wide{trailer.parts} * trailer.slots_per_part;
  const Wide buckets = Wide{trailer.parts} * trailer.buckets_per_part;
  return trailer.parts > 0 && trailer.slots_per_part > 0 && trailer.buckets_per_part > 0 &&
         slots <= kMostBytes && buckets <= kMostBytes && trailer.parts <= UINT32_MAX;
}

}  // namespace

uint64_t IndexLayout::file_bytes() const {
  return identity_at() + kIdentityBytes + sizeof(Trailer);
}

std::optional<std::string_view> token_of_line(std::string_view line, const TokenColumn& column) {
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  if (column.index == TokenColumn::kWholeLine) return line;
  for (int64_t skipped = 0; skipped < column.index; ++skipped) {
    const size_t end = line.find(column.delimiter);
    if (end == line.npos) return std::nullopt;
    line.remove_prefix(end + 1);
  }
  return line.substr(0, line.find(column.delimiter));
}

void BlockChecksums::add(std::string_view bytes) {
  while (!bytes.empty()) {
    const uint64_t some = std::min<uint64_t>(bytes.size(), kIndexBlock - filled_);
    crc_ = crc32c(bytes.substr(0, some), crc_);
    bytes.remove_prefix(some);
    filled_ += some;
    if (filled_ < kIndexBlock) continue;
    checksums_.push_back(mask_crc(crc_));
    crc_ = 0;
    filled_ = 0;
  }
}

std::vector<uint32_t> BlockChecksums::finish() {
  if (filled_ > 0) add(std::string(kIndexBlock - filled_, '\0'));
  return std::move(checksums_);
}

std::string encode_identity(const TextIdentity& identity) {
  Identity stored{identity};
  stored.crc = crc_of(stored);
  return bytes_of(stored, kIdentityBytes);
}

std::optional<TextIdentity> decode_identity(std::string_view index, const IndexLayout& layout) {
  Identity stored;
  std::memcpy(&stored, index.data() + layout.identity_at(), sizeof stored);
  if (stored.crc != crc_of(stored)) return std::nullopt;
  return stored.of;
}

std::string encode_trailer(const IndexLayout& layout, std::string_view checksums) {
  Trailer trailer{};
  trailer.text_bytes = layout.text_bytes;
  trailer.lines = layout.lines;
  trailer.twins = layout.twins;
  trailer.seed = layout.function.seed;
  trailer.parts = layout.function.parts;
  trailer.slots_per_part = layout.function.slots_per_part;
  trailer.buckets_per_part = layout.function.buckets_per_part;
  trailer.column = layout.column.index;
  trailer.delimiter = static_cast<unsigned char>(layout.column.delimiter);
  trailer.checksums_crc = mask_crc(crc32c(checksums));
  trailer.version = kVersion;
  std::memcpy(trailer.magic, kMagic, sizeof kMagic);
  trailer.crc = crc_of(trailer);
  return bytes_of(trailer, sizeof trailer);
}

IndexLayout decode_trailer(std::string_view index) {
  Trailer trailer;
  if (index.size() < sizeof trailer) throw DataLossError("it is too short");
  std::memcpy(&trailer, index.data() + index.size() - sizeof trailer, sizeof trailer);
  if (std::memcmp(trailer.magic, kMagic, sizeof kMagic) != 0) {
    throw DataLossError("it has no trailer, as of a file that was not written to its end");
  }
  if (trailer.crc != crc_of(trailer)) throw DataLossError("its trailer has a wrong checksum");
  if (trailer.version != kVersion) {
    throw UnimplementedError(
        str("it has version ", trailer.version, "; this is version ", kVersion));
  }
  const IndexLayout layout{
      .text_bytes = trailer.text_bytes,
      .lines = trailer.lines,
      .twins = trailer.twins,
      .function = {trailer.seed, trailer.parts, trailer.slots_per_part, trailer.buckets_per_part},
      .column = {trailer.column, static_cast<char>(trailer.delimiter)}};
  if (!is_possible(trailer) || layout.file_bytes() != index.size()) {
    throw DataLossError("its size is not what its trailer says");
  }
  const std::string_view checksums = index.substr(layout.checksums_at(), layout.num_blocks() * 4);
  if (trailer.checksums_crc != mask_crc(crc32c(checksums))) {
    throw DataLossError("its list of checksums has a wrong checksum");
  }
  return layout;
}

}  // namespace cohort::internal
