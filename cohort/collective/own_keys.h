// A task's keys in the store of a group: they serve to form it, and nobody needs them once it
// stands.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "cohort/collective/group_store.h"

namespace cohort::collective {

// Wraps another store and remembers which keys this task has set.
// Thread safety: any thread.
class OwnKeys final : public GroupStore {
 public:
  explicit OwnKeys(std::shared_ptr<GroupStore> store) : store_(std::move(store)) {}

  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, std::chrono::steady_clock::time_point deadline) override {
    return store_->get(key, deadline);
  }
  std::optional<std::string> find(const std::string& key) override { return store_->find(key); }
  bool remove(const std::string& key) override;

  // Removes the keys. To be called when this task has returned from its first call over the group's
  // communicator: by then all tasks have read what they need.
  // Errors: those of the store.
  void remove_all();

 private:
  const std::shared_ptr<GroupStore> store_;
  std::mutex mutex_;
  std::set<std::string> keys_;  // guarded by mutex_
};

}  // namespace cohort::collective
