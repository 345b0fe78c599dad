#include "cohort/parameter_server/runner/loop_result.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/cluster/server_core.h"
#include "cohort/core/bytes/fields.h"
#include "cohort/core/error.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/program/interrupt.h"
#include "cohort/core/text.h"
#include "cohort/core/threads/backoff.h"
#include "cohort/distribute/tasks/structure_message.h"

namespace cohort::internal {
namespace {

// A LoopResult as its fields.
struct ResultError {
  Code code = Code::kOk;
  std::string text;
  std::string task;
  Cause cause = Cause::kOther;
  bool interrupted = false;
};
void fields(auto& f, ResultError& error) {
  f(1, error.code, Code::kUnauthenticated);
  f(2, error.text);
  f(3, error.task);
  f(4, error.cause, Cause::kProgramFailed);
  f(5, error.interrupted);
}

struct ResultFields {
  std::string name;
  int64_t generation = 0;
  bool is_last = false;
  bool is_left_out = false;
  std::optional<ResultError> error = std::nullopt;
  std::string_view form = {};  // of the value,
  std::vector<std::string_view> bulk = {};
};
void fields(auto& f, ResultFields& result) {
  f(1, result.name);
  f(2, result.generation);
  f(3, result.is_last);
  f(4, result.is_left_out);
  f(5, result.error);
  f(6, result.form);
  f(7, result.bulk);
}

constexpr size_t kMostBytes = size_t{64} << 20;
constexpr size_t kPartBytes = size_t{1} << 19;  // a value of Coordination has 1 MiB at most
constexpr std::chrono::seconds kAsk{5};
constexpr std::chrono::milliseconds kRetry{200};

constexpr const char* kFirstKept = "cohort/calls kept from";

// How many parts there are beside it, and the first bytes: most results have no others.
std::string key_of(int64_t call) { return str("cohort/calls/", call); }
std::string part_of(int64_t call, int64_t part) { return str(key_of(call), "/", part); }

// What tasks have written of calls. Errors: DataLoss (names the key).
int64_t number_in(std::string_view text, const std::string& key) {
  const auto number = parse_number<int64_t>(text);
  if (number && *number >= 0) return *number;
  throw DataLossError(
      str("the coordinator keeps ", quoted(text), " as ", quoted(key), ", where a number belongs"));
}

// The value of key_of(call).
struct Head {
  int64_t parts_beside = 0;
  std::string_view bytes;
};
Head head_of(std::string_view value, int64_t call) {
  const size_t end = value.find(' ');
  const int64_t parts = number_in(value.substr(0, end), key_of(call));
  constexpr auto kMostParts = static_cast<int64_t>(kMostBytes / kPartBytes);
  if (end == std::string_view::npos || parts > kMostParts) {
    throw DataLossError(str("the result of call ", call,
                            " of fit, evaluate or predict is damaged: ", parts,
                            " parts are to follow ", quoted(value.substr(0, 40))));
  }
  return {.parts_beside = parts, .bytes = value.substr(end + 1)};
}

std::string taken_key(const TaskId& task) { return str("cohort/calls taken/", task); }

bool is_interrupt(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const InterruptedError&) {
    return true;
  } catch (...) {
    return false;
  }
}

std::string encode(const LoopResult& result) {
  ResultFields out{result.name, result.generation, result.is_last, result.is_left_out};
  if (result.error != nullptr) {
    const ErrorRecord error = record_error(result.error);
    out.error = {error.code, error.message, error.task, rpc::detail_of(result.error).cause,
                 is_interrupt(result.error)};
    return encode_fields(out);
  }
  const rpc::Message value = to_message(result.value);
  out.form = value.control;
  for (const rpc::Bytes& bulk : value.bulk) out.bulk.emplace_back(bulk.data, bulk.size);
  return encode_fields(out);
}

LoopResult decode(const std::string& bytes) {
  constexpr char kWhat[] = "the result of a call";
  const auto in = decode_fields<ResultFields>(bytes, kWhat);
  LoopResult result{.name = in.name, .generation = in.generation};
  result.is_last = in.is_last;
  result.is_left_out = in.is_left_out;
  if (!in.error) {
    rpc::Message value{.control = std::string(in.form)};
    for (const std::string_view bulk : in.bulk) {
      auto owned = std::make_shared<const std::string>(bulk);
      value.bulk.push_back({owned, owned->data(), owned->size()});
    }
    result.value = to_structure(value, kWhat);
  } else if (in.error->interrupted) {
    result.error = std::make_exception_ptr(InterruptedError(in.error->text));
  } else {
    result.error =
        rpc::make_error(in.error->code, in.error->text, in.error->task, {.cause = in.error->cause});
  }
  return result;
}

// The coordinator ends the others' tasks with its own: no other one will come.
void check_not_ended(const distribute::Server& server, int64_t call) {
  if (!server.core().is_stopping()) return;
  if (const std::exception_ptr error = server.core().stop_error()) {
    throw UnavailableError(
        str("this task's server has stopped before it learnt how call ", call,
            " of fit, evaluate or predict has ended: ", record_error(error).message));
  }
  throw UnavailableError(str("the coordinator has ended before this task learnt how call ", call,
                             " of fit, evaluate or predict has ended; its log says so"));
}

// Refuses a task that was started again and would pass by calls that have ended.
void check_kept(distribute::Coordination& coordination, int64_t call) {
  std::optional<std::string> first;
  try {
    first = coordination.find(kFirstKept);
  } catch (const Error&) {  // of the coordinator, which is asked again
  }
  if (!first || call >= number_in(*first, kFirstKept)) return;
  throw UnavailableError(str("this task has come to call ", call,
                             " of fit, evaluate or predict, but of what these have returned the "
                             "coordinator keeps call ",
                             *first,
                             " and later ones: a task that is started again can take no part any "
                             "more, and other workers take its steps"));
}

}  // namespace

size_t publish(distribute::Coordination& coordination, int64_t call, const LoopResult& result) {
  std::string bytes = encode(result);
  if (bytes.size() > kMostBytes) {
    log_warning("what ", quoted(result.name), " returned, ", bytes.size(),
                " bytes, is too large to be sent to the other tasks: there it returns nothing");
    LoopResult shorter = result;
    shorter.value = {};
    shorter.is_left_out = true;
    bytes = encode(shorter);
  }
  const auto beside = static_cast<int64_t>((bytes.size() - 1) / kPartBytes);
  for (int64_t part = 1; part <= beside; ++part) {
    coordination.set(part_of(call, part),
                     bytes.substr(static_cast<size_t>(part) * kPartBytes, kPartBytes));
  }
  coordination.set(key_of(call), str(beside, ' ', bytes.substr(0, kPartBytes)));
  return bytes.size();
}

void forget(distribute::Coordination& coordination, int64_t call) {
  const std::optional<std::string> head = coordination.find(key_of(call));
  if (!head) return;
  coordination.remove(key_of(call));
  const int64_t beside = head_of(*head, call).parts_beside;
  for (int64_t part = 1; part <= beside; ++part) coordination.remove(part_of(call, part));
}

void set_first_kept(distribute::Coordination& coordination, int64_t call) {
  coordination.set(kFirstKept, decimal_digits(call));
}

void acknowledge(distribute::Coordination& coordination, const TaskId& self, int64_t call) {
  try {
    coordination.set(taken_key(self), decimal_digits(call));
  } catch (const Error& error) {
    log_info("the coordinator was not told that call ", call, " is over here: ", error.what());
  }
}

int64_t last_taken(distribute::Coordination& coordination, const TaskId& task) {
  const std::optional<std::string> call = coordination.find(taken_key(task));
  return call ? number_in(*call, taken_key(task)) : 0;
}

LoopResult wait_for_result(distribute::Server& server, int64_t call, FunctionRef<void()> check,
                           std::chrono::steady_clock::time_point deadline) {
  distribute::Coordination& coordination = server.coordination();
  Backoff retries(kRetry);
  while (true) {
    check();
    check_kept(coordination, call);
    const auto left = deadline - std::chrono::steady_clock::now();
    if (left <= left.zero()) {
      throw DeadlineExceededError(
          str("the coordinator has not said how call ", call, " has ended"));
    }
    std::string bytes;
    try {
      const std::string head = coordination.get(
          key_of(call), std::chrono::ceil<std::chrono::milliseconds>(
                            std::min<std::chrono::steady_clock::duration>(left, kAsk)));
      const Head first = head_of(head, call);
      bytes = first.bytes;
      for (int64_t part = 1; part <= first.parts_beside; ++part) {
        bytes += coordination.get(part_of(call, part), kAsk);
      }
    } catch (const DeadlineExceededError&) {  // it goes on
      check_not_ended(server, call);
      continue;
    } catch (const DataLossError&) {
      throw;
    } catch (const Error&) {
      if (server.core().membership().agent().error() != nullptr) throw;
      check_not_ended(server, call);
      // This task waits for the next coordinator until its lease on this one is over.
      retries.sleep(deadline);
      continue;
    }
    return decode(bytes);  // what is damaged is an error, and would be at the next try
  }
}

}  // namespace cohort::internal
