#include "cohort/data/functions/error_context.h"

#include <c10/util/Exception.h>

#include "cohort/core/error.h"

namespace cohort::internal {

void throw_code(Code code, const std::string& text, const std::string& task) {
  switch (code) {
    case Code::kCancelled:
      throw CancelledError(text, task);
    case Code::kInvalidArgument:
      throw InvalidArgumentError(text, task);
    case Code::kDeadlineExceeded:
      throw DeadlineExceededError(text, task);
    case Code::kNotFound:
      throw NotFoundError(text, task);
    case Code::kAlreadyExists:
      throw AlreadyExistsError(text, task);
    case Code::kPermissionDenied:
      throw PermissionDeniedError(text, task);
    case Code::kResourceExhausted:
      throw ResourceExhaustedError(text, task);
    case Code::kFailedPrecondition:
      throw FailedPreconditionError(text, task);
    case Code::kAborted:
      throw AbortedError(text, task);
    case Code::kOutOfRange:
      throw OutOfRangeError(text, task);
    case Code::kUnimplemented:
      throw UnimplementedError(text, task);
    case Code::kInternal:
      throw InternalError(text, task);
    case Code::kUnavailable:
      throw UnavailableError(text, task);
    case Code::kDataLoss:
      throw DataLossError(text, task);
    case Code::kUnauthenticated:
      throw UnauthenticatedError(text, task);
    case Code::kOk:
    case Code::kUnknown:
      break;
  }
  throw UnknownError(text, task);
}

void rethrow_with_context(const std::string& context) {
  try {
    throw;
  } catch (const Error& error) {
    throw_code(error.code(), context + ": " + error.what(), error.task());
  } catch (const c10::Error& error) {
    throw InvalidArgumentError(context + ": " + error.what_without_backtrace());
  } catch (const std::exception& error) {
    throw UnknownError(context + ": " + error.what());
  }
}

}  // namespace cohort::internal
