// The key-value store of a cluster's coordination service: small values that tasks tell each other.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/cluster/membership/messages.h"
#include "cohort/cluster/membership/session.h"

namespace cohort::internal::membership {

struct StoreLimits {
  size_t keys_per_task = 10'000;
  size_t bytes = size_t{256} << 20;  // of all keys and values
};

// Errors of all changes: InvalidArgument (a key that is empty, longer than 1 KiB or not UTF-8),
// ResourceExhausted (a value above 1 MiB, too many keys of a task, too many bytes of all).
// A key counts for the task that made it, until it is removed. Thread safety: none.
class Store {
 public:
  explicit Store(const StoreLimits& limits = {}) : limits_(limits) {}

  // Nothing where there is none.
  const std::string* get(std::string_view key) const;
  void set(const Session& session, const StoreRequest& request);
  // The sum, which is stored as text; what is absent counts as 0.
  // Errors: FailedPrecondition (the value is no number), OutOfRange (the sum is not an int64).
  int64_t add(const Session& session, const StoreRequest& request);
  // Whether the value was as expected, and is now request.value.
  bool compare_and_set(const Session& session, const StoreRequest& request);
  // Whether there was one.
  bool remove(std::string_view key);
  // Keys that begin with `prefix` and lie behind `after`, in order of their bytes.
  StoreReply list(std::string_view prefix, std::string_view after) const;

  // Removes the session keys of an incarnation that has ended.
  void end(const Session& session);

  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::string value;
    TaskId creator;
    Session owner;  // of a session key; else incarnation 0
  };
  using Entries = std::map<std::string, Entry, std::less<>>;

  void put(const Session& session, const StoreRequest& request, std::string value);
  void erase(Entries::iterator entry);

  StoreLimits limits_;
  Entries entries_;
  std::map<TaskId, size_t> keys_of_;
  size_t bytes_ = 0;
};

}  // namespace cohort::internal::membership
