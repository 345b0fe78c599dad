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

void throw_task_error(Code code, const std::string& message, const std::string& task) {
  switch (code) {
    case Code::kCancelled:
      throw CancelledError(message, task);
    case Code::kInvalidArgument:
      throw InvalidArgumentError(message, task);
    case Code::kDeadlineExceeded:
      throw DeadlineExceededError(message, task);
    case Code::kNotFound:
      throw NotFoundError(message, task);
    case Code::kAlreadyExists:
      throw AlreadyExistsError(message, task);
    case Code::kPermissionDenied:
      throw PermissionDeniedError(message, task);
    case Code::kResourceExhausted:
      throw ResourceExhaustedError(message, task);
    case Code::kFailedPrecondition:
      throw FailedPreconditionError(message, task);
    case Code::kAborted:
      throw AbortedError(message, task);
    case Code::kOutOfRange:
      throw OutOfRangeError(message, task);
    case Code::kUnimplemented:
      throw UnimplementedError(message, task);
    case Code::kUnavailable:
      throw UnavailableError(message, task);
    case Code::kDataLoss:
      throw DataLossError(message, task);
    case Code::kUnauthenticated:
      throw UnauthenticatedError(message, task);
    case Code::kOk:
    case Code::kInternal:
      throw InternalError(message, task);
    case Code::kUnknown:
      break;
  }
  throw UnknownError(message, task);
}

}  // namespace cohort::internal
