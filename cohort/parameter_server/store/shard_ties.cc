#include "cohort/parameter_server/store/shard_ties.h"

#include <utility>

namespace cohort::internal {

void ShardTies::tie(const ShardKey& key, const ShardKey& owner) {
  tied_[owner].insert(key);
  owners_[key].insert(owner);
}

std::set<ShardKey> ShardTies::extract(const ShardKey& key, Pairs& pairs, Pairs& inverse) {
  const auto found = pairs.extract(key);
  if (found.empty()) return {};
  for (const ShardKey& other : found.mapped()) {
    const auto back = inverse.find(other);
    if (back == inverse.end()) continue;
    back->second.erase(key);
    if (back->second.empty()) inverse.erase(back);
  }
  return std::move(found.mapped());
}

std::set<ShardKey> ShardTies::release(const ShardKey& key) {
  extract(key, owners_, tied_);
  return extract(key, tied_, owners_);
}

size_t ShardTies::size() const {
  size_t pairs = 0;
  for (const auto& [owner, tied] : tied_) pairs += tied.size();
  return pairs;
}

}  // namespace cohort::internal
