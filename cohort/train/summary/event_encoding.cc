#include "cohort/train/summary/event_encoding.h"

#include <bit>

#include "cohort/core/bytes/wire.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

// How many bytes of `text` the character at its front has; 0 if it is none in UTF-8.
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
  if (length == 0 || length > text.size()) return 0;
  uint32_t code = lead & (0xffu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0u) != 0x80u) return 0;
    code = code << 6 | (byte(i) & 0x3fu);
  }
  // Written with more bytes than needed, half of a pair, or beyond the last.
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool valid = code >= kSmallest[length] && (code < 0xd800 || code > 0xdfff);
  return valid && code <= 0x10ffff ? length : 0;
}

void require_utf8(std::string_view text, const char* what) {
  for (std::string_view left = text; !left.empty();) {
    const size_t length = utf8_length(left);
    if (length == 0) {
      throw InvalidArgumentError(str("the ", what, " of a summary is not UTF-8 at byte ",
                                     text.size() - left.size(), ": ", quoted(text)));
    }
    left.remove_prefix(length);
  }
}

std::string encode_shape(std::span<const int64_t> shape) {
  WireWriter out;
  for (const int64_t size : shape) {
    WireWriter dim;
    dim.varint(1, static_cast<uint64_t>(size));
    out.bytes(2, dim.str());
  }
  return out.str();
}

}  // namespace

std::string encode_event_numbers(EventDtype dtype, std::span<const int64_t> shape,
                                 std::string_view content) {
  static_assert(std::endian::native == std::endian::little, "files hold little-endian numbers");
  WireWriter tensor;
  tensor.varint(1, static_cast<uint64_t>(dtype)).bytes(2, encode_shape(shape)).bytes(4, content);
  return tensor.str();
}

std::string encode_event_strings(std::span<const int64_t> shape,
                                 std::span<const std::string> values) {
  WireWriter tensor;
  tensor.varint(1, static_cast<uint64_t>(EventDtype::kString)).bytes(2, encode_shape(shape));
  for (const std::string& value : values) tensor.bytes(8, value);
  return tensor.str();
}

std::string encode_summary(const SummaryEvent& event) {
  require_utf8(event.tag, "name");
  require_utf8(event.description, "description");
  WireWriter plugin;
  plugin.bytes(1, event.plugin);
  if (!event.plugin_content.empty()) plugin.bytes(2, event.plugin_content);
  WireWriter metadata;
  metadata.bytes(1, plugin.str());
  if (!event.description.empty()) metadata.bytes(3, event.description);
  WireWriter value;
  value.bytes(1, event.tag).bytes(8, event.tensor).bytes(9, metadata.str());
  WireWriter summary;
  summary.bytes(1, value.str());
  WireWriter out;
  out.fixed64(1, std::bit_cast<uint64_t>(event.wall_time));
  out.varint(2, static_cast<uint64_t>(event.step)).bytes(5, summary.str());
  return out.str();
}

std::string encode_graph(double wall_time, std::string_view graph_def) {
  WireWriter out;
  out.fixed64(1, std::bit_cast<uint64_t>(wall_time)).bytes(4, graph_def);
  return out.str();
}

std::string encode_file_version(double wall_time) {
  WireWriter out;
  out.fixed64(1, std::bit_cast<uint64_t>(wall_time)).bytes(3, "brain.Event:2");
  return out.str();
}

}  // namespace cohort::internal
