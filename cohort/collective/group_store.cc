#include "cohort/collective/group_store.h"

#include <algorithm>
#include <map>

#include "cohort/cluster/coordination.h"
#include "cohort/core/error.h"
#include "cohort/core/threads/synchronized.h"

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
    values_.change()->insert_or_assign(key, value);
  }
  std::string get(const std::string& key, Clock::time_point deadline) override {
    auto values = values_.lock();
    if (!values.wait_until(deadline, [&] { return values->contains(key); })) {
      throw DeadlineExceededError(internal::str("nobody has set '", key, "' in time"));
    }
    return values->at(key);
  }
  std::optional<std::string> find(const std::string& key) override {
    const auto values = values_.lock();
    const auto found = values->find(key);
    return found == values->end() ? std::nullopt : std::optional(found->second);
  }
  bool remove(const std::string& key) override { return values_.lock()->erase(key) != 0; }

 private:
  internal::Synchronized<std::map<std::string, std::string>> values_;
};

}  // namespace

std::shared_ptr<GroupStore> make_cluster_store(distribute::Coordination& coordination) {
  return std::make_shared<ClusterStore>(coordination);
}

std::shared_ptr<GroupStore> make_memory_store() { return std::make_shared<MemoryStore>(); }

}  // namespace cohort::collective
