// For tests: a GroupStore that calls a function before a key is used.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cohort/collective/group_store.h"

namespace cohort::collective {

// What the function throws, the call throws.
class StoreWithHook final : public GroupStore {
 public:
  using Hook = std::function<void(const std::string& key)>;

  StoreWithHook(std::shared_ptr<GroupStore> store, Hook before)
      : store_(std::move(store)), before_(std::move(before)) {}

  void set(const std::string& key, const std::string& value) override {
    before_(key);
    store_->set(key, value);
  }
  std::string get(const std::string& key, std::chrono::steady_clock::time_point deadline) override {
    before_(key);
    return store_->get(key, deadline);
  }
  std::optional<std::string> find(const std::string& key) override {
    before_(key);
    return store_->find(key);
  }
  bool remove(const std::string& key) override {
    before_(key);
    return store_->remove(key);
  }

 private:
  const std::shared_ptr<GroupStore> store_;
  const Hook before_;
};

}  // namespace cohort::collective
