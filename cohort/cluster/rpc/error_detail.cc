#include "cohort/cluster/rpc/error_detail.h"

#include <utility>

#include "cohort/cluster/rpc/coordinator_errors.h"
#include "cohort/cluster/rpc/text.h"
#include "cohort/core/bytes/wire.h"

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

// Of the code's class, or one that says more, by the phase.
template <Code kCode>
std::exception_ptr make_detailed(const std::string& message, const std::string& task,
                                 ErrorDetail detail) {
  using OfCode = internal::ErrorOf<kCode>;
  if (detail.phase == internal::kClosureInput) {
    return std::make_exception_ptr(InputError<OfCode>(message, task, std::move(detail)));
  }
  if constexpr (kCode == Code::kUnavailable) {
    if (detail.phase == internal::kPsLost) {
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

std::string encode_error(const std::exception_ptr& error) {
  const ErrorRecord record = record_error(error);
  const ErrorDetail detail = detail_of(error);
  const auto name = [](const std::string& text) { return shortened(text, kMostErrorNameBytes); };
  WireWriter out;
  out.varint(1, static_cast<uint64_t>(record.code));
  out.bytes(2, shortened(record.message, kMostErrorTextBytes));
  if (!record.task.empty()) out.bytes(3, name(record.task));
  if (detail == ErrorDetail{}) return out.str();
  WireWriter fields;
  if (!detail.peer.empty()) fields.bytes(1, name(detail.peer));
  if (detail.incarnation != 0) fields.varint(2, detail.incarnation);
  if (detail.generation != 0) fields.varint(3, static_cast<uint64_t>(detail.generation));
  if (!detail.phase.empty()) fields.bytes(4, name(detail.phase));
  fields.varint(5, static_cast<uint64_t>(detail.step));
  if (!detail.rpc.empty()) fields.bytes(6, name(detail.rpc));
  if (detail.system_error != 0) fields.varint(7, static_cast<uint32_t>(detail.system_error));
  out.bytes(4, fields.str());
  return out.str();
}

namespace {

ErrorDetail decode_detail(std::string_view bytes) {
  WireReader in(bytes, "the detail of an error");
  const auto name = [&] { return printable(head_of(in.bytes(), kMostErrorNameBytes)); };
  ErrorDetail detail;
  while (in.next()) {
    switch (in.field()) {
      case 1:
        detail.peer = name();
        break;
      case 2:
        detail.incarnation = in.varint();
        break;
      case 3:
        detail.generation = static_cast<int64_t>(in.varint());
        break;
      case 4:
        detail.phase = name();
        break;
      case 5:
        detail.step = static_cast<int64_t>(in.varint());
        break;
      case 6:
        detail.rpc = name();
        break;
      case 7:
        detail.system_error = static_cast<int>(in.varint());
        break;
      default:
        break;
    }
  }
  return detail;
}

}  // namespace

std::exception_ptr decode_error(std::string_view bytes) {
  ErrorRecord record{.code = Code::kOk, .message = ""};
  ErrorDetail detail;
  try {
    WireReader in(bytes, "an error of another task");
    while (in.next()) {
      switch (in.field()) {
        case 1:
          record.code = static_cast<Code>(in.varint());
          break;
        case 2:
          record.message = printable(head_of(in.bytes(), kMostErrorTextBytes));
          break;
        case 3:
          record.task = printable(head_of(in.bytes(), kMostErrorNameBytes));
          break;
        case 4:
          detail = decode_detail(in.bytes());
          break;
        default:
          break;
      }
    }
  } catch (const DataLossError& broken) {
    return internal::make_error(
        Code::kUnknown, str("a task answered with an error that cannot be read: ", broken.what(),
                            ", after the text ", record.message));
  }
  if (record.code <= Code::kOk || record.code > Code::kUnauthenticated) {
    record.message = str("an error of code ", static_cast<int>(record.code),
                         ", which this version does not know: ", record.message);
    record.code = Code::kUnknown;
  }
  return make_error(record.code, record.message, record.task, std::move(detail));
}

}  // namespace internal::rpc
}  // namespace cohort
