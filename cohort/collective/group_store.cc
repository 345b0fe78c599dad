#include "cohort/collective/group_store.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>

#include "cohort/cluster/coordination.h"
#include "cohort/core/error.h"

namespace cohort::collective {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

class ClusterStore final : public GroupStore {
 public:
  explicit ClusterStore(distribute::Coordination& coordination) : coordination_(coordination) {}

  void set(const std::string& key, const std::string& value) override {
    coordination_.set(key, value, {.session = true});
  }
  std::string get(const std::string& key, Clock::time_point deadline) override {
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
    return coordination_.get(key, std::max(left, milliseconds(1)));
  }
  std::optional<std::string> find(const std::string& key) override {
    return coordination_.find(key);
  }
  bool remove(const std::string& key) override { return coordination_.remove(key); }

 private:
  distribute::Coordination& coordination_;
};

class MemoryStore final : public GroupStore {
 public:
  void set(const std::string& key, const std::string& value) override {
    {
      std::lock_guard lock(mutex_);
      values_[key] = value;
    }
    changed_.notify_all();
  }
  std::string get(const std::string& key, Clock::time_point deadline) override {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_until(lock, deadline, [&] { return values_.contains(key); })) {
      throw DeadlineExceededError(internal::str("nobody has set '", key, "' in time"));
    }
    return values_[key];
  }
  std::optional<std::string> find(const std::string& key) override {
    const std::lock_guard lock(mutex_);
    const auto found = values_.find(key);
    return found == values_.end() ? std::nullopt : std::optional(found->second);
  }
  bool remove(const std::string& key) override {
    std::lock_guard lock(mutex_);
    return values_.erase(key) != 0;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;  // guarded by mutex_
};

}  // namespace

std::shared_ptr<GroupStore> make_cluster_store(distribute::Coordination& coordination) {
  return std::make_shared<ClusterStore>(coordination);
}

std::shared_ptr<GroupStore> make_memory_store() { return std::make_shared<MemoryStore>(); }

}  // namespace cohort::collective
