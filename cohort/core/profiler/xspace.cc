#include "cohort/core/profiler/xspace.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/core/bytes/fields.h"
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

// Messages of TensorFlow's xplane.proto.
struct XEvent {
  uint64_t name = 0;
  uint64_t offset = 0;
  uint64_t duration = 0;
};
void fields(auto& f, XEvent& event) {
  f(1, event.name);
  f(2, event.offset, kAlways);
  f(3, event.duration, kAlways);
}

struct XLine {
  uint64_t id = 0;
  std::string_view name;
  int64_t begin = 0;
  std::vector<XEvent> events = {};
};
void fields(auto& f, XLine& line) {
  f(1, line.id);
  f(2, line.name);
  f(3, line.begin);
  f(4, line.events);
}

struct XName {
  uint64_t id = 0;
  std::string_view name;
};
void fields(auto& f, XName& name) {
  f(1, name.id);
  f(2, name.name);
}

struct XPlane {
  std::string_view name;
  std::vector<XLine> lines = {};
  std::map<uint64_t, XName> names = {};  // of events
};
void fields(auto& f, XPlane& plane) {
  f(2, plane.name);
  f(3, plane.lines);
  f(4, plane.names);
}

struct XSpace {
  XPlane plane;
  std::string_view host;
};
void fields(auto& f, XSpace& space) {
  f(1, space.plane);
  f(4, space.host);
}

}  // namespace

std::string encode_xspace(const profiler::Profile& profile, std::string_view host,
                          std::chrono::sys_time<nanoseconds> begin) {
  XSpace space{{.name = kThreadsPlane}, host};
  std::map<std::string_view, uint64_t> ids;  // of names, each of which is written once
  for (const profiler::ThreadProfile& thread : profile.threads) {
    XLine line{space.plane.lines.size() + 1, thread.name, begin.time_since_epoch().count()};
    const auto add = [&](std::string_view name, const auto& event) {
      const uint64_t id = ids.emplace(name, ids.size() + 1).first->second;
      space.plane.names[id] = {id, name};
      line.events.push_back({id, picoseconds(event.begin), picoseconds(event.duration)});
    };
    for (const profiler::TraceEvent& event : thread.events) {
      add(profiler::phase_name(event.phase), event);
    }
    for (const profiler::TracePart& part : thread.parts) add(part.name, part);
    space.plane.lines.push_back(std::move(line));
  }
  return encode_fields(space);
}

void write_xspace(const profiler::Profile& profile, const std::string& path, double now) {
  const std::chrono::sys_time<nanoseconds> end(
      std::chrono::duration_cast<nanoseconds>(std::chrono::duration<double>(now)));
  const auto file = posix_file_system().create(path);
  file->append(encode_xspace(profile, host_name(), end - profile.wall));
  file->close();
}

}  // namespace cohort::internal
