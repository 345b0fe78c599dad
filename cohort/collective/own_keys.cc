#include "cohort/collective/own_keys.h"

namespace cohort::collective {

void OwnKeys::set(const std::string& key, const std::string& value) {
  {
    const std::lock_guard lock(mutex_);
    keys_.insert(key);
  }
  store_->set(key, value);
}

bool OwnKeys::remove(const std::string& key) {
  {
    const std::lock_guard lock(mutex_);
    keys_.erase(key);
  }
  return store_->remove(key);
}

void OwnKeys::remove_all() {
  std::set<std::string> keys;
  {
    const std::lock_guard lock(mutex_);
    keys.swap(keys_);
  }
  for (const std::string& key : keys) store_->remove(key);
}

}  // namespace cohort::collective
