// The store in which the tasks of a group leave each other the few small values that they need to
// connect: addresses, names, nonces.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace cohort::distribute {
class Coordination;
}

namespace cohort::collective {

// Thread safety: any thread.
class GroupStore {
 public:
  virtual ~GroupStore() = default;
  // Keys have up to 1 KiB, values up to 1 MiB. A value goes when its task's process does.
  virtual void set(const std::string& key, const std::string& value) = 0;
  // Waits for the key. Errors: DeadlineExceeded (names the key), those of the store.
  virtual std::string get(const std::string& key,
                          std::chrono::steady_clock::time_point deadline) = 0;
  // Does not wait: nothing if there is no such key. Errors: those of the store.
  virtual std::optional<std::string> find(const std::string& key) = 0;
  // Whether there was such a key.
  virtual bool remove(const std::string& key) = 0;
};

// Over the key-value store of the cluster's coordination service, which must outlive it.
std::shared_ptr<GroupStore> make_cluster_store(distribute::Coordination& coordination);

// For the tasks of one process.
std::shared_ptr<GroupStore> make_memory_store();

}  // namespace cohort::collective
