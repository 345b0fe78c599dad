#include "cohort/core/error.h"

#include <cstddef>
#include <iterator>

namespace cohort {
namespace {

using Throw = void (*)(const std::string& message, const std::string& task);

template <class ErrorClass>
void throw_as(const std::string& message, const std::string& task) {
  throw ErrorClass(message, task);
}

struct CodeEntry {
  std::string_view name;
  Throw throw_error;
};

// By code.
constexpr CodeEntry kCodes[] = {
    {"OK", throw_as<InternalError>},
    {"CANCELLED", throw_as<CancelledError>},
    {"UNKNOWN", throw_as<UnknownError>},
    {"INVALID_ARGUMENT", throw_as<InvalidArgumentError>},
    {"DEADLINE_EXCEEDED", throw_as<DeadlineExceededError>},
    {"NOT_FOUND", throw_as<NotFoundError>},
    {"ALREADY_EXISTS", throw_as<AlreadyExistsError>},
    {"PERMISSION_DENIED", throw_as<PermissionDeniedError>},
    {"RESOURCE_EXHAUSTED", throw_as<ResourceExhaustedError>},
    {"FAILED_PRECONDITION", throw_as<FailedPreconditionError>},
    {"ABORTED", throw_as<AbortedError>},
    {"OUT_OF_RANGE", throw_as<OutOfRangeError>},
    {"UNIMPLEMENTED", throw_as<UnimplementedError>},
    {"INTERNAL", throw_as<InternalError>},
    {"UNAVAILABLE", throw_as<UnavailableError>},
    {"DATA_LOSS", throw_as<DataLossError>},
    {"UNAUTHENTICATED", throw_as<UnauthenticatedError>},
};

const CodeEntry& entry_of(Code code) {
  const auto index = static_cast<size_t>(code);  // of a negative one: beyond the end
  return kCodes[index < std::size(kCodes) ? index : static_cast<size_t>(Code::kUnknown)];
}

}  // namespace

std::string_view code_name(Code code) { return entry_of(code).name; }

namespace internal {

void throw_error(Code code, const std::string& message, const std::string& task) {
  entry_of(code).throw_error(message, task);
  std::terminate();  // never reached
}

std::exception_ptr make_error(Code code, const std::string& message, const std::string& task) {
  try {
    throw_error(code, message, task);
  } catch (...) {
    return std::current_exception();
  }
}

ErrorRecord record_error(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& typed) {
    return {typed.code(), typed.what(), typed.task()};
  } catch (const std::exception& other) {
    return {Code::kUnknown, other.what()};
  } catch (...) {
    return {Code::kUnknown, "an exception that is no std::exception"};
  }
}

}  // namespace internal
}  // namespace cohort
