// Remembers which pushes were applied, so that one that is sent again is not applied twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>

namespace cohort::internal {

// Thread safety: none.
class AppliedTokens {
 public:
  bool contains(uint64_t token) const { return token < below_ || tokens_.contains(token); }
  // Memory for one, with which adding it cannot fail.
  using Room = std::set<uint64_t>::node_type;
  static Room room_for(uint64_t token) {
    std::set<uint64_t> one = {token};
    return one.extract(one.begin());
  }
  void add(Room token) { tokens_.insert(std::move(token)); }
  void add(uint64_t token) { add(room_for(token)); }
  // All tokens below are over: whether they were applied or not, they count as applied.
  void forget_below(uint64_t token) {
    if (token <= below_) return;
    below_ = token;
    tokens_.erase(tokens_.begin(), tokens_.lower_bound(token));
  }
  size_t size() const { return tokens_.size(); }

 private:
  uint64_t below_ = 0;
  std::set<uint64_t> tokens_;
};

}  // namespace cohort::internal
