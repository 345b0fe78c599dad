#include "cohort/train/saving/group_talk.h"

#include "cohort/core/bytes/fields.h"
#include "cohort/core/error.h"
#include "cohort/core/threads/bounded_wait.h"

namespace cohort::internal {
namespace {

// The last byte of a reply: what comes before it. At the end, where it moves nothing.
constexpr char kReplyValue = 'v';
constexpr char kReplyError = 'e';

struct ReplyError {
  Code code = Code::kUnknown;
  std::string text = {};
  std::string member = {};
};
void fields(auto& f, ReplyError& error) {
  f(1, error.code, kAlways, Code::kUnauthenticated);
  f(2, error.text);
  f(3, error.member);
}

// The reply that tells of the exception that is being handled.
std::string error_reply(const std::string& member) {
  const ErrorRecord error = record_error(std::current_exception());
  const ReplyError reply{error.code, error.message, error.task.empty() ? member : error.task};
  return encode_fields(reply) + kReplyError;
}

[[noreturn]] void throw_reply(std::string_view message) {
  const auto error = decode_fields<ReplyError>(message, "the reply of a member of the group");
  throw_error(error.code, error.text, error.member);
}

// The value of a reply. Errors: what it says.
std::string_view value_of_reply(std::string_view reply) {
  if (reply.empty() || (reply.back() != kReplyValue && reply.back() != kReplyError)) {
    throw DataLossError("the reply of a member of the group is malformed");
  }
  const std::string_view content = reply.substr(0, reply.size() - 1);
  if (reply.back() == kReplyError) throw_reply(content);
  return content;
}

struct Attempt {
  std::string reply;
  std::exception_ptr error;
};

Attempt attempt(const std::function<std::string()>& produce, const std::string& member) {
  Attempt result;
  try {
    result.reply = produce();
    result.reply += kReplyValue;
  } catch (const std::exception&) {
    result.error = std::current_exception();
    result.reply = error_reply(member);
  }
  return result;
}

}  // namespace

std::vector<std::string_view> MemberReplies::all() const {
  if (own_ != nullptr) std::rethrow_exception(own_);
  std::vector<std::string_view> values;
  for (const std::string& reply : replies_) values.push_back(value_of_reply(reply));
  return values;
}

train::SaveGroupCall GroupTalk::call(std::string_view step,
                                     std::chrono::milliseconds patience) const {
  return {str(about_, ": ", step), timeout_ + bounded_wait(patience)};
}

std::string WriterReply::value() const {
  if (own_ != nullptr) std::rethrow_exception(own_);
  return std::string(value_of_reply(reply_));
}

WriterReply GroupTalk::hear(std::string_view step, const std::function<std::string()>& produce,
                            std::chrono::milliseconds patience) const {
  Attempt own;
  if (is_writer()) own = attempt(produce, group_->name());
  std::string heard;
  try {
    heard = group_->barrier(std::move(own.reply), call(step, patience));
  } catch (const Error&) {
    if (own.error == nullptr) throw;  // else it says more than that the others cannot be told
  }
  return {std::move(heard), std::move(own.error)};
}

std::string GroupTalk::tell(std::string_view step, const std::function<std::string()>& produce,
                            std::chrono::milliseconds patience) const {
  return hear(step, produce, patience).value();
}

MemberReplies GroupTalk::collect(std::string_view step,
                                 const std::function<std::string()>& produce) const {
  Attempt own = attempt(produce, group_->name());
  std::vector<std::string> replies =
      group_->gather(std::move(own.reply), call(step, std::chrono::milliseconds::zero()));
  return {std::move(replies), std::move(own.error)};
}

}  // namespace cohort::internal
