#include "cohort/testing/task_report.h"

#include <cstdint>
#include <cstring>

namespace cohort::internal {
namespace {
constexpr size_t kHeaderBytes = 1 + sizeof(uint64_t);
}  // namespace

std::string encode(const TaskReport& report) {
  const uint64_t size = report.text.size();
  std::string bytes(kHeaderBytes, '\0');
  bytes[0] = static_cast<char>(report.code);
  std::memcpy(bytes.data() + 1, &size, sizeof(size));
  return bytes + report.text;
}

std::optional<TaskReport> decode_report(std::string_view bytes) {
  if (bytes.size() < kHeaderBytes) return std::nullopt;
  uint64_t size = 0;
  std::memcpy(&size, bytes.data() + 1, sizeof(size));
  if (bytes.size() - kHeaderBytes != size) return std::nullopt;
  return TaskReport{static_cast<Code>(bytes[0]), std::string(bytes.substr(kHeaderBytes))};
}

}  // namespace cohort::internal
