// A SaveGroup for tests: its members are threads of this process.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/train/objects/save_group.h"

namespace cohort::train {

// Where the members meet. Thread safety: any thread.
class MemberBarrier {
 public:
  explicit MemberBarrier(int size) : size_(static_cast<size_t>(size)) {}

  // What all brought to call number `round`. The first failure of a round is that of all.
  std::vector<std::string> meet(int64_t round, size_t rank, std::string brought,
                                const SaveGroupCall& call) {
    std::unique_lock lock(mutex_);
    Round& here = rounds_.try_emplace(round, Round{call.name, {}, {}}).first->second;
    here.brought.resize(size_);
    if (here.name != call.name) {
      fail(here, std::make_exception_ptr(FailedPreconditionError("members call '" + here.name +
                                                                 "' and '" + call.name + "'")));
    }
    bytes_ += brought.size();
    here.brought[rank] = std::move(brought);
    changed_.notify_all();
    const auto done = [&] { return here.error != nullptr || missing(here).empty(); };
    if (!changed_.wait_for(lock, call.timeout, done)) {
      fail(here, std::make_exception_ptr(
                     DeadlineExceededError(call.name + ": still waiting for" + missing(here))));
    }
    if (here.error != nullptr) std::rethrow_exception(here.error);
    std::vector<std::string> all;
    for (const auto& one : here.brought) all.push_back(*one);
    return all;
  }

  // That all members have brought so far.
  size_t bytes() const {
    std::lock_guard lock(mutex_);
    return bytes_;
  }

 private:
  struct Round {
    std::string name;
    std::vector<std::optional<std::string>> brought;
    std::exception_ptr error;
  };

  void fail(Round& round, std::exception_ptr error) {
    if (round.error == nullptr) round.error = std::move(error);
    changed_.notify_all();
  }
  static std::string missing(const Round& round) {
    std::string names;
    for (size_t i = 0; i < round.brought.size(); ++i) {
      if (!round.brought[i]) names += " task " + std::to_string(i);
    }
    return names;
  }

  const size_t size_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int64_t, Round> rounds_;
  size_t bytes_ = 0;
};

// Member 0 writes.
class ThreadSaveGroup final : public SaveGroup {
 public:
  ThreadSaveGroup(std::shared_ptr<MemberBarrier> place, int rank)
      : place_(std::move(place)), rank_(static_cast<size_t>(rank)) {}

  bool is_writer() const override { return rank_ == 0; }
  std::string name() const override { return "task " + std::to_string(rank_); }
  std::vector<std::string> gather(std::string brought, const SaveGroupCall& call) override {
    auto all = place_->meet(round_++, rank_, std::move(brought), call);
    return is_writer() ? std::move(all) : std::vector<std::string>();
  }
  std::string barrier(std::string words, const SaveGroupCall& call) override {
    return place_->meet(round_++, rank_, std::move(words), call)[0];
  }

 private:
  const std::shared_ptr<MemberBarrier> place_;
  const size_t rank_;
  int64_t round_ = 0;
};

}  // namespace cohort::train
