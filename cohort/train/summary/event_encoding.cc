#include "cohort/train/summary/event_encoding.h"

#include <bit>
#include <optional>
#include <vector>

#include "cohort/core/bytes/fields.h"
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

// Messages of TensorFlow's event.proto, summary.proto and tensor.proto.
struct Dim {
  int64_t size = 0;
};
void fields(auto& f, Dim& dim) { f(1, dim.size, kAlways); }

struct Shape {
  std::vector<Dim> dims;
};
void fields(auto& f, Shape& shape) { f(2, shape.dims); }

struct TensorProto {
  EventDtype dtype = EventDtype::kString;
  Shape shape;
  std::optional<std::string_view> content;
  std::span<const std::string> strings = {};
};
void fields(auto& f, TensorProto& tensor) {
  f(1, tensor.dtype);
  f(2, tensor.shape, kAlways);
  f(4, tensor.content);
  f(8, tensor.strings);
}

struct Plugin {
  std::string_view name;
  std::string_view content;
};
void fields(auto& f, Plugin& plugin) {
  f(1, plugin.name, kAlways);
  f(2, plugin.content);
}

struct Metadata {
  Plugin plugin;
  std::string_view description;
};
void fields(auto& f, Metadata& metadata) {
  f(1, metadata.plugin);
  f(3, metadata.description);
}

struct Value {
  std::string_view tag;
  std::string_view tensor;
  Metadata metadata;
};
void fields(auto& f, Value& value) {
  f(1, value.tag, kAlways);
  f(8, value.tensor, kAlways);
  f(9, value.metadata);
}

struct Summary {
  Value value;
};
void fields(auto& f, Summary& summary) { f(1, summary.value); }

struct Event {
  double wall_time = 0;
  std::optional<int64_t> step = std::nullopt;
  std::optional<std::string_view> version = std::nullopt;
  std::optional<std::string_view> graph = std::nullopt;
  std::optional<Summary> summary = std::nullopt;
};
void fields(auto& f, Event& event) {
  f(1, event.wall_time, kAlways);
  f(2, event.step);
  f(3, event.version);
  f(4, event.graph);
  f(5, event.summary);
}

Shape shape_of(std::span<const int64_t> sizes) {
  Shape shape;
  for (const int64_t size : sizes) shape.dims.push_back({size});
  return shape;
}

}  // namespace

std::string encode_event_numbers(EventDtype dtype, std::span<const int64_t> shape,
                                 std::string_view content) {
  static_assert(std::endian::native == std::endian::little, "files hold little-endian numbers");
  return encode_fields(TensorProto{dtype, shape_of(shape), content});
}

std::string encode_event_strings(std::span<const int64_t> shape,
                                 std::span<const std::string> values) {
  return encode_fields(TensorProto{EventDtype::kString, shape_of(shape), std::nullopt, values});
}

std::string encode_summary(const SummaryEvent& event) {
  require_utf8(event.tag, "name");
  require_utf8(event.description, "description");
  const Metadata metadata{{event.plugin, event.plugin_content}, event.description};
  return encode_fields(Event{.wall_time = event.wall_time,
                             .step = event.step,
                             .summary = Summary{{event.tag, event.tensor, metadata}}});
}

std::string encode_graph(double wall_time, std::string_view graph_def) {
  return encode_fields(Event{.wall_time = wall_time, .graph = graph_def});
}

std::string encode_file_version(double wall_time) {
  return encode_fields(Event{.wall_time = wall_time, .version = "brain.Event:2"});
}

}  // namespace cohort::internal
