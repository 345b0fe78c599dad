// TensorBoard's events as bytes: what tensorflow/core/util/event.proto and summary.proto say, as
// far as summaries need it.
//
//   Event       wall_time: double = 1, step: int64 = 2, file_version: string = 3,
//               graph_def: bytes = 4, summary = 5
//   Summary     value = 1 (repeated)
//   Value       tag: string = 1, tensor: TensorProto = 8, metadata: SummaryMetadata = 9
//   TensorProto dtype = 1, shape = 2 {dim = 2 {size = 1}}, content: bytes = 4, string_val = 8
//   SummaryMetadata  plugin_data = 1 {plugin_name = 1, content = 2}, description = 3
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace cohort::internal {

// TensorFlow's numbers.
enum class EventDtype : uint64_t { kFloat = 1, kDouble = 2, kString = 7 };

// A TensorProto. `content` holds the numbers in row-major order.
std::string encode_event_numbers(EventDtype dtype, std::span<const int64_t> shape,
                                 std::string_view content);
std::string encode_event_strings(std::span<const int64_t> shape,
                                 std::span<const std::string> values);

struct SummaryEvent {
  double wall_time = 0;  // seconds since 1970
  int64_t step = 0;
  std::string_view tag = {};             // UTF-8
  std::string_view plugin = {};          // which of TensorBoard's pages shows it: "scalars"
  std::string_view plugin_content = {};  // what that page wants to know: its version, say
  std::string_view description = {};     // UTF-8, Markdown
  std::string_view tensor = {};          // a TensorProto
};

// An Event with one value.
// Errors: InvalidArgument (a tag or description that is not UTF-8: no reader would accept it).
std::string encode_summary(const SummaryEvent& event);
// An Event with a graph: a serialized GraphDef.
std::string encode_graph(double wall_time, std::string_view graph_def);
// The Event that begins every file.
std::string encode_file_version(double wall_time);

}  // namespace cohort::internal
