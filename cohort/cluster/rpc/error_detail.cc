#include "cohort/cluster/rpc/error_detail.h"

#include <optional>
#include <utility>

#include "cohort/cluster/rpc/coordinator_errors.h"
#include "cohort/cluster/rpc/text.h"
#include "cohort/core/bytes/fields.h"

namespace cohort {
namespace {

using distribute::coordinator::ClosureInputError;
using distribute::coordinator::PSUnavailableError;

class COHORT_API DetailHolder {
 public:
  explicit DetailHolder(ErrorDetail detail) : detail_(std::move(detail)) {}
  virtual ~DetailHolder() = default;
  const ErrorDetail& detail() const { return detail_; }

 private:
  ErrorDetail detail_;
};

// Beside the class that users catch, so that errors without a detail stay small.
template <class ErrorClass>
class DetailedError : public ErrorClass, public DetailHolder {
 public:
  DetailedError(const std::string& message, const std::string& task, ErrorDetail detail)
      : ErrorClass(message, task), DetailHolder(std::move(detail)) {}
};

template <class ErrorClass>
class InputError final : public DetailedError<ErrorClass>, public ClosureInputError {
 public:
  using DetailedError<ErrorClass>::DetailedError;
  const Error& error() const override { return *this; }
};

// The class is the code's, or one that says more, by the cause.
template <Code kCode>
std::exception_ptr make_detailed(const std::string& message, const std::string& task,
                                 ErrorDetail detail) {
  using OfCode = internal::ErrorOf<kCode>;
  if (detail.cause == Cause::kInputFailed) {
    return std::make_exception_ptr(InputError<OfCode>(message, task, std::move(detail)));
  }
  if constexpr (kCode == Code::kUnavailable) {
    if (detail.cause == Cause::kPsLost) {
      return std::make_exception_ptr(
          DetailedError<PSUnavailableError>(message, task, std::move(detail)));
    }
  }
  return std::make_exception_ptr(DetailedError<OfCode>(message, task, std::move(detail)));
}

std::string shortened(std::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  const std::string_view head = internal::rpc::head_of(text, most - 40);
  return internal::str(head, "... (", text.size() - head.size(), " more bytes)");
}

}  // namespace

const ErrorDetail* error_detail(const std::exception& error) {
  const auto* holder = dynamic_cast<const DetailHolder*>(&error);
  return holder == nullptr ? nullptr : &holder->detail();
}

void fields(auto& f, ErrorDetail& detail) {
  f(1, detail.peer);
  f(2, detail.incarnation);
  f(3, detail.generation);
  f(4, detail.phase);
  f(5, detail.step, internal::kAlways);
  f(6, detail.rpc);
  f(7, detail.system_error);
}

namespace internal::rpc {

std::exception_ptr make_error(Code code, const std::string& message, const std::string& task,
                              ErrorDetail detail) {
  using Make = std::exception_ptr (*)(const std::string&, const std::string&, ErrorDetail);
  constexpr Make kByCode[] = {
      make_detailed<Code::kInternal>,  // kOk is not an error
      make_detailed<Code::kCancelled>,          make_detailed<Code::kUnknown>,
      make_detailed<Code::kInvalidArgument>,    make_detailed<Code::kDeadlineExceeded>,
      make_detailed<Code::kNotFound>,           make_detailed<Code::kAlreadyExists>,
      make_detailed<Code::kPermissionDenied>,   make_detailed<Code::kResourceExhausted>,
      make_detailed<Code::kFailedPrecondition>, make_detailed<Code::kAborted>,
      make_detailed<Code::kOutOfRange>,         make_detailed<Code::kUnimplemented>,
      make_detailed<Code::kInternal>,           make_detailed<Code::kUnavailable>,
      make_detailed<Code::kDataLoss>,           make_detailed<Code::kUnauthenticated>,
  };
  if (detail == ErrorDetail{}) return internal::make_error(code, message, task);
  const auto number = static_cast<size_t>(code);  // of a negative one: beyond the end
  const size_t known = number < std::size(kByCode) ? number : static_cast<size_t>(Code::kUnknown);
  return kByCode[known](message, task, std::move(detail));
}

ErrorDetail detail_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& found) {
    const ErrorDetail* detail = error_detail(found);
    return detail == nullptr ? ErrorDetail{} : *detail;
  } catch (...) {
    return {};
  }
}

std::exception_ptr no_answer(Code code, const std::string& message, const TaskId& peer,
                             std::string_view method) {
  return make_error(
      code, message, "",
      {.peer = to_string(peer), .rpc = std::string(method), .cause = Cause::kNoAnswer});
}

bool is_unanswered(const std::exception_ptr& error, Code code, const TaskId& peer) {
  const ErrorDetail detail = detail_of(error);
  return detail.cause == Cause::kNoAnswer && detail.peer == to_string(peer) &&
         record_error(error).code == code;
}

namespace {

constexpr Cause kLastCause = Cause::kProgramFailed;

struct ErrorFields {
  int64_t code = 0;  // another version may know more of them
  std::string message = {};
  std::string task = {};
  std::optional<ErrorDetail> detail = {};
  uint64_t cause = 0;  // the same
};
void fields(auto& f, ErrorFields& error) {
  f(1, error.code);
  f(2, error.message);
  f(3, error.task);
  f(4, error.detail);
  f(5, error.cause);
}

ErrorDetail with_names(ErrorDetail detail, std::string (*name_of)(std::string_view)) {
  for (std::string* name : {&detail.peer, &detail.phase, &detail.rpc}) *name = name_of(*name);
  return detail;
}

std::string short_name(std::string_view text) { return shortened(text, kMostErrorNameBytes); }
std::string shown_name(std::string_view text) {
  return printable(head_of(text, kMostErrorNameBytes));
}

}  // namespace

std::string encode_error(const std::exception_ptr& error) {
  const ErrorRecord record = record_error(error);
  const ErrorDetail detail = detail_of(error);
  ErrorFields out{.code = static_cast<int64_t>(record.code),
                  .message = shortened(record.message, kMostErrorTextBytes),
                  .task = short_name(record.task),
                  .cause = static_cast<uint64_t>(detail.cause)};
  if (detail != ErrorDetail{}) out.detail = with_names(detail, short_name);
  return encode_fields(out);
}

std::exception_ptr decode_error(std::string_view bytes) {
  ErrorFields in;
  std::string unread;
  try {
    decode_fields(bytes, "an error of another task", in);
  } catch (const DataLossError& broken) {
    unread = broken.what();
  }
  const std::string message = printable(head_of(in.message, kMostErrorTextBytes));
  if (!unread.empty()) {
    return internal::make_error(Code::kUnknown,
                                str("a task answered with an error that cannot be read: ", unread,
                                    ", after the text ", message));
  }
  ErrorDetail detail = with_names(in.detail.value_or(ErrorDetail{}), shown_name);
  if (in.cause <= static_cast<uint64_t>(kLastCause)) detail.cause = static_cast<Cause>(in.cause);
  const std::string task = shown_name(in.task);
  if (in.code <= 0 || in.code > static_cast<int64_t>(Code::kUnauthenticated)) {
    const std::string strange =
        str("an error of code ", in.code, ", which this version does not know: ", message);
    return make_error(Code::kUnknown, strange, task, detail);
  }
  return make_error(static_cast<Code>(in.code), message, task, detail);
}

}  // namespace internal::rpc
}  // namespace cohort
