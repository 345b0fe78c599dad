#include "cohort/cluster/membership/store.h"

#include <optional>

#include "cohort/cluster/rpc/text.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal::membership {
namespace {

std::string shown_key(std::string_view key) { return quoted(rpc::printable(key)); }

}  // namespace

const std::string* Store::get(std::string_view key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : &found->second.value;
}

void Store::set(const Session& session, const StoreRequest& request) {
  put(session, request, request.value);
}

int64_t Store::add(const Session& session, const StoreRequest& request) {
  int64_t sum = 0;
  if (const std::string* value = get(request.key)) {
    const std::optional<int64_t> number = parse_number<int64_t>(*value);
    if (!number) {
      throw FailedPreconditionError(str("add: the value of key ", shown_key(request.key), " is ",
                                        shown_key(rpc::head_of(*value, 40)),
                                        ", which is no number"));
    }
    sum = *number;
  }
  if (__builtin_add_overflow(sum, request.delta, &sum)) {
    throw OutOfRangeError(str("add: the value of key ", shown_key(request.key), " plus ",
                              request.delta, " does not fit 64 bits"));
  }
  put(session, request, decimal_digits(sum));
  return sum;
}

bool Store::compare_and_set(const Session& session, const StoreRequest& request) {
  const std::string* value = get(request.key);
  const bool as_expected =
      request.expected ? value != nullptr && *value == *request.expected : value == nullptr;
  if (as_expected) put(session, request, request.value);
  return as_expected;
}

bool Store::remove(std::string_view key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return false;
  erase(found);
  return true;
}

StoreReply Store::list(std::string_view prefix, std::string_view after) const {
  StoreReply reply;
  auto entry = after < prefix ? entries_.lower_bound(prefix) : entries_.upper_bound(after);
  for (; entry != entries_.end() && entry->first.starts_with(prefix); ++entry) {
    if (reply.keys.size() == kMostListed) {
      reply.more = true;
      break;
    }
    reply.keys.push_back(entry->first);
  }
  return reply;
}

void Store::end(const Session& session) {
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto next = std::next(entry);
    if (entry->second.owner == session) erase(entry);
    entry = next;
  }
}

void Store::put(const Session& session, const StoreRequest& request, std::string value) {
  check_name("a key", request.key, kMostKeyBytes);
  if (value.size() > kMostValueBytes) {
    throw ResourceExhaustedError(str("the value of key ", shown_key(request.key), " has ",
                                     value.size(), " bytes; at most ", kMostValueBytes,
                                     " are allowed"));
  }
  const auto found = entries_.find(request.key);
  const bool is_new = found == entries_.end();
  const size_t before = is_new ? 0 : request.key.size() + found->second.value.size();
  const size_t after = request.key.size() + value.size();
  if (bytes_ - before + after > limits_.bytes) {
    throw ResourceExhaustedError(str("the store is full: key ", shown_key(request.key), " needs ",
                                     after, " bytes, of ", limits_.bytes, " are ", bytes_ - before,
                                     " taken"));
  }
  if (is_new) {
    size_t& keys = keys_of_[session.task];
    if (keys >= limits_.keys_per_task) {
      throw ResourceExhaustedError(str(session.task, " has ", keys,
                                       " keys in the store, as many as a task may have; key ",
                                       shown_key(request.key), " is one too many"));
    }
    ++keys;
  }
  Entry& entry = is_new ? entries_[request.key] : found->second;
  if (is_new) entry.creator = session.task;
  entry.value = std::move(value);
  entry.owner = request.session ? session : Session{};
  bytes_ = bytes_ - before + after;
}

void Store::erase(Entries::iterator entry) {
  bytes_ -= entry->first.size() + entry->second.value.size();
  const auto count = keys_of_.find(entry->second.creator);
  if (--count->second == 0) keys_of_.erase(count);
  entries_.erase(entry);
}

}  // namespace cohort::internal::membership
