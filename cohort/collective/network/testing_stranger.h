// For tests: a program that does not belong to a group, and connects wherever Gloo listens.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/collective/group_store.h"
#include "cohort/core/host/unique_fd.h"

namespace cohort::collective {

// A frame as Gloo's own look: what it is, where it belongs, and how long.
inline std::string gloo_frame(size_t operation, size_t slot, size_t length) {
  const size_t header[] = {sizeof(size_t) * 6 + length, operation, slot, 0, length, 0};
  return {reinterpret_cast<const char*>(header), sizeof header};
}

// Connects to every address of loopback that a task leaves for Gloo's first attempt, as any program
// could, and says `words`.
class StoreWithAStranger final : public GroupStore {
 public:
  StoreWithAStranger(std::shared_ptr<GroupStore> store, std::string words)
      : store_(std::move(store)), words_(std::move(words)) {}

  void set(const std::string& key, const std::string& value) override {
    if (key.find("/gloo/0/") != std::string::npos) visit_all(value);
    store_->set(key, value);
  }
  std::string get(const std::string& key, std::chrono::steady_clock::time_point deadline) override {
    return store_->get(key, deadline);
  }
  std::optional<std::string> find(const std::string& key) override { return store_->find(key); }
  bool remove(const std::string& key) override { return store_->remove(key); }

  int visits() const { return visits_; }

 private:
  // The addresses are sockaddr_in among other bytes.
  void visit_all(const std::string& bytes) {
    for (size_t at = 0; at + sizeof(sockaddr_in) <= bytes.size(); at += alignof(sockaddr_in)) {
      sockaddr_in address;
      std::memcpy(&address, bytes.data() + at, sizeof address);
      if (address.sin_family == AF_INET && address.sin_addr.s_addr == htonl(INADDR_LOOPBACK)) {
        visit(address);
      }
    }
  }
  void visit(const sockaddr_in& address) {
    internal::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      return;
    }
    ::send(socket.get(), words_.data(), words_.size(), MSG_NOSIGNAL);
    ++visits_;
    const std::lock_guard lock(mutex_);
    sockets_.push_back(std::move(socket));  // stays, as one does that waits for an answer
  }

  const std::shared_ptr<GroupStore> store_;
  const std::string words_;
  std::atomic<int> visits_ = 0;
  std::mutex mutex_;
  std::vector<internal::UniqueFd> sockets_;  // guarded by mutex_
};

}  // namespace cohort::collective
