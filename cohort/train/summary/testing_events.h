// For tests: the events of a file, read field by field.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "cohort/core/bytes/wire.h"
#include "cohort/core/files/file_system.h"
#include "cohort/data/records/record_reader.h"
#include "cohort/data/records/tfrecord_framing.h"

namespace cohort::internal {

struct ReadEvent {
  double wall_time = 0;
  int64_t step = 0;
  std::string file_version;
  std::string graph;  // a GraphDef
  std::string tag;
  std::string plugin;
  std::string description;
  uint64_t dtype = 0;
  std::vector<int64_t> shape;
  std::string content;
  std::vector<std::string> strings;

  template <class Number>
  std::vector<Number> numbers() const {
    std::vector<Number> values(content.size() / sizeof(Number));
    if (!values.empty()) std::memcpy(values.data(), content.data(), values.size() * sizeof(Number));
    return values;
  }
};

// visit(reader) for each field of the message.
template <class Visit>
void for_each_field(std::string_view message, const Visit& visit) {
  WireReader reader(message, "event");
  while (reader.next()) visit(reader);
}

inline void read_tensor(std::string_view message, ReadEvent& event) {
  for_each_field(message, [&](WireReader& tensor) {
    if (tensor.field() == 1) event.dtype = tensor.varint();
    if (tensor.field() == 4) event.content = tensor.bytes();
    if (tensor.field() == 8) event.strings.emplace_back(tensor.bytes());
    if (tensor.field() != 2) return;
    for_each_field(tensor.bytes(), [&](WireReader& shape) {
      event.shape.push_back(0);
      for_each_field(shape.bytes(), [&](WireReader& dim) {
        if (dim.field() == 1) event.shape.back() = static_cast<int64_t>(dim.varint());
      });
    });
  });
}

inline void read_metadata(std::string_view message, ReadEvent& event) {
  for_each_field(message, [&](WireReader& metadata) {
    if (metadata.field() == 3) event.description = metadata.bytes();
    if (metadata.field() != 1) return;
    for_each_field(metadata.bytes(), [&](WireReader& plugin) {
      if (plugin.field() == 1) event.plugin = plugin.bytes();
    });
  });
}

inline ReadEvent read_event(std::string_view message) {
  ReadEvent event;
  for_each_field(message, [&](WireReader& reader) {
    if (reader.field() == 1) event.wall_time = std::bit_cast<double>(reader.fixed64());
    if (reader.field() == 2) event.step = static_cast<int64_t>(reader.varint());
    if (reader.field() == 3) event.file_version = reader.bytes();
    if (reader.field() == 4) event.graph = reader.bytes();
    if (reader.field() != 5) return;
    for_each_field(reader.bytes(), [&](WireReader& summary) {
      for_each_field(summary.bytes(), [&](WireReader& value) {
        if (value.field() == 1) event.tag = value.bytes();
        if (value.field() == 8) read_tensor(value.bytes(), event);
        if (value.field() == 9) read_metadata(value.bytes(), event);
      });
    });
  });
  return event;
}

// All but the first, which must be the file's version.
inline std::vector<ReadEvent> read_events(FileSystem& files, const std::string& path) {
  const auto reader = open_records(files, path, Compression::kNone, make_tfrecord_framing());
  std::vector<ReadEvent> events;
  for (RecordRun run = reader->next(); !run.records.empty(); run = reader->next()) {
    for (const std::string_view record : run.records) events.push_back(read_event(record));
  }
  if (events.empty() || events[0].file_version != "brain.Event:2") {
    ADD_FAILURE() << path << " begins with no file version";
    return events;
  }
  events.erase(events.begin());
  return events;
}

inline std::vector<std::string> tags_of(const std::vector<ReadEvent>& events) {
  std::vector<std::string> tags;
  for (const ReadEvent& event : events) tags.push_back(event.tag);
  return tags;
}

}  // namespace cohort::internal
