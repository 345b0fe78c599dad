// For tests and benchmarks of processes without a cluster: a GroupStore in a folder.
#pragma once

#include <poll.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

#include "cohort/collective/group_store.h"
#include "cohort/core/error.h"

namespace cohort::collective {

// A key is a file. The folder must be there; whoever made it removes it.
class DirectoryStore final : public GroupStore {
 public:
  explicit DirectoryStore(std::filesystem::path directory) : directory_(std::move(directory)) {}

  void set(const std::string& key, const std::string& value) override {
    const std::filesystem::path path = path_of(key);
    const std::filesystem::path unfinished = path.string() + ".unfinished";
    std::ofstream(unfinished) << value;
    std::filesystem::rename(unfinished, path);
  }
  std::string get(const std::string& key, std::chrono::steady_clock::time_point deadline) override {
    for (;;) {
      if (auto value = find(key)) return std::move(*value);
      if (std::chrono::steady_clock::now() >= deadline) {
        throw DeadlineExceededError(internal::str("nobody has set '", key, "' in time"));
      }
      ::poll(nullptr, 0, 1);
    }
  }
  std::optional<std::string> find(const std::string& key) override {
    const std::ifstream file(path_of(key));
    if (!file.good()) return std::nullopt;
    std::ostringstream text;
    text << file.rdbuf();
    return std::move(text).str();
  }
  bool remove(const std::string& key) override {
    std::error_code error;
    return std::filesystem::remove(path_of(key), error);
  }

 private:
  std::filesystem::path path_of(std::string key) const {
    for (char& c : key) {
      if (c == '/') c = '_';
    }
    return directory_ / key;
  }

  std::filesystem::path directory_;
};

}  // namespace cohort::collective
