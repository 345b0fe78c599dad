#include "cohort/core/profiler/xspace.h"

#include <algorithm>
#include <cstdint>
#include <map>

#include "cohort/core/bytes/wire.h"
#include "cohort/core/files/file_system.h"
#include "cohort/core/host/host_name.h"

namespace cohort::internal {
namespace {

using std::chrono::nanoseconds;

// The plane that holds a host's threads.
constexpr const char* kThreadsPlane = "/host:CPU";

uint64_t picoseconds(nanoseconds time) {
  return static_cast<uint64_t>(std::max<int64_t>(time.count(), 0)) * 1000;
}

// Names of events, each written once.
class EventNames {
 public:
  uint64_t id_of(const std::string& name) {
    return ids_.emplace(name, ids_.size() + 1).first->second;
  }
  void write(WireWriter& plane) const {
    for (const auto& [name, id] : ids_) {
      WireWriter metadata, entry;
      metadata.varint(1, id).bytes(2, name);
      entry.varint(1, id).bytes(2, metadata.str());
      plane.bytes(4, entry.str());
    }
  }

 private:
  std::map<std::string, uint64_t> ids_;
};

}  // namespace

std::string encode_xspace(const profiler::Profile& profile, std::string_view host,
                          std::chrono::sys_time<nanoseconds> begin) {
  EventNames names;
  WireWriter plane;
  plane.varint(1, 0).bytes(2, kThreadsPlane);
  for (size_t t = 0; t < profile.threads.size(); ++t) {
    const profiler::ThreadProfile& thread = profile.threads[t];
    WireWriter line;
    line.varint(1, t + 1).bytes(2, thread.name);
    line.varint(3, static_cast<uint64_t>(begin.time_since_epoch().count()));
    const auto add = [&](const std::string& name, const auto& event) {
      WireWriter one;
      one.varint(1, names.id_of(name))
          .varint(2, picoseconds(event.begin))
          .varint(3, picoseconds(event.duration));
      line.bytes(4, one.str());
    };
    for (const profiler::TraceEvent& event : thread.events) {
      add(profiler::phase_name(event.phase), event);
    }
    for (const profiler::TracePart& part : thread.parts) add(part.name, part);
    plane.bytes(3, line.str());
  }
  names.write(plane);
  WireWriter space;
  space.bytes(1, plane.str()).bytes(4, host);
  return space.str();
}

void write_xspace(const profiler::Profile& profile, const std::string& path, double now) {
  const std::chrono::sys_time<nanoseconds> end(
      std::chrono::duration_cast<nanoseconds>(std::chrono::duration<double>(now)));
  const auto file = posix_file_system().create(path);
  file->append(encode_xspace(profile, host_name(), end - profile.wall));
  file->close();
}

}  // namespace cohort::internal
