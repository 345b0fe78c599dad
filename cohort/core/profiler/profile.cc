#include "cohort/core/profiler/profile.h"

#include <algorithm>

#include "cohort/core/error.h"
#include "cohort/core/files/file_system.h"
#include "cohort/core/text.h"

namespace cohort::profiler {
namespace {

double milliseconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

std::string thousandths(double value) { return internal::fixed_digits(value, 3); }

std::string padded(const std::string& text, size_t width) {
  std::string line(width - std::min(width, text.size()), ' ');
  line += text;
  return line;
}

// Thread names are the program's, and may hold anything.
std::string json_string(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += byte < 0x20 || byte >= 0x7f ? '?' : c;
  }
  return quoted + '"';
}

}  // namespace

const char* phase_name(Phase phase) {
  constexpr const char* kNames[kNumPhases] = {"input", "compute", "reduce", "update", "wait"};
  return kNames[static_cast<size_t>(phase)];
}

std::string Profile::table() const {
  constexpr size_t kWidth = 10;
  std::string text = padded("ms a step", 16);
  for (size_t p = 0; p < kNumPhases; ++p) text += padded(phase_name(static_cast<Phase>(p)), kWidth);
  text += padded("other", kWidth) + '\n';
  const double count = steps > 0 ? static_cast<double>(steps) : 1;
  for (const ThreadProfile& thread : threads) {
    text += padded(thread.name, 16);
    double rest = milliseconds(wall);
    for (const auto time : thread.time) {
      text += padded(thousandths(milliseconds(time) / count), kWidth);
      rest -= milliseconds(time);
    }
    text += padded(thousandths(rest / count), kWidth) + '\n';
  }
  return text +
         internal::str(steps, " steps of ", thousandths(milliseconds(wall) / count), " ms\n");
}

void Profile::write_chrome_trace(const std::string& path) const {
  std::string json = "{\"traceEvents\":[";
  const char* separator = "\n";
  for (size_t t = 0; t < threads.size(); ++t) {
    json += internal::str(separator, "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":", t,
                          ",\"args\":{\"name\":", json_string(threads[t].name), "}}");
    separator = ",\n";
    const auto append = [&](const std::string& name, const auto& event) {
      json += internal::str(separator, "{\"name\":", json_string(name),
                            ",\"ph\":\"X\",\"pid\":1,\"tid\":", t,
                            ",\"ts\":", thousandths(milliseconds(event.begin) * 1e3),
                            ",\"dur\":", thousandths(milliseconds(event.duration) * 1e3), "}");
    };
    for (const TraceEvent& event : threads[t].events) append(phase_name(event.phase), event);
    for (const TracePart& part : threads[t].parts) append(part.name, part);
  }
  json += "\n]}\n";
  const auto file = internal::posix_file_system().create(path);
  file->append(json);
  file->close();
}

}  // namespace cohort::profiler
