#include "cohort/core/observe/logging.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_color_sinks.h>

#include <atomic>
#include <memory>

namespace cohort {
namespace {

std::atomic<logging::Level> current_level{logging::Level::kInfo};

// Never destroyed: a detached thread may log while the process ends.
spdlog::logger& logger() {
  static spdlog::logger* const instance = [] {
    auto* made =
        new spdlog::logger("cohort", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    made->set_pattern("%Y-%m-%d %H:%M:%S.%e %n %^%l%$: %v");
    made->set_level(spdlog::level::trace);  // the level that counts is ours
    made->flush_on(spdlog::level::trace);
    return made;
  }();
  return *instance;
}

spdlog::level::level_enum to_spdlog(logging::Level level) {
  switch (level) {
    case logging::Level::kDebug:
      return spdlog::level::debug;
    case logging::Level::kInfo:
      return spdlog::level::info;
    case logging::Level::kWarning:
      return spdlog::level::warn;
    case logging::Level::kError:
      return spdlog::level::err;
    case logging::Level::kOff:
      return spdlog::level::off;
  }
  return spdlog::level::off;
}

// A name out of a file or a message must neither start a log line of its own nor steer a terminal.
std::string printable(std::string_view message) {
  constexpr char kHexDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(message.size());
  for (char c : message) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      text += "\n    ";
    } else if ((byte < 0x20 && c != '\t') || byte == 0x7f) {
      text += "\\x";
      text += kHexDigits[byte >> 4];
      text += kHexDigits[byte & 15];
    } else {
      text += c;
    }
  }
  return text;
}

}  // namespace

namespace logging {

void set_level(Level level) { current_level.store(level, std::memory_order_relaxed); }
Level level() { return current_level.load(std::memory_order_relaxed); }

}  // namespace logging

namespace internal {

void write_log(logging::Level level, std::string_view message) {
  if (level == logging::Level::kOff) return;
  logger().log(to_spdlog(level), printable(message));
}

}  // namespace internal
}  // namespace cohort
