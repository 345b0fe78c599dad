// Ties shards of a ps task to others without which they are of no use, as slots to their variable.
#pragma once

#include <cstddef>
#include <map>
#include <set>

#include "cohort/parameter_server/store/shard_key.h"

namespace cohort::internal {

// Thread safety: none.
class ShardTies {
 public:
  // Either of them need not be there (yet). A shard may have several owners.
  void tie(const ShardKey& key, const ShardKey& owner);
  // Nothing is tied to the shard any more, nor it to others. Returns what was tied to it.
  std::set<ShardKey> release(const ShardKey& key);
  // How many pairs of a shard and an owner there are.
  size_t size() const;

 private:
  using Pairs = std::map<ShardKey, std::set<ShardKey>>;
  // Removes the second keys of `key` from `pairs`, and the same pairs from `inverse`.
  static std::set<ShardKey> extract(const ShardKey& key, Pairs& pairs, Pairs& inverse);

  Pairs tied_;    // by owners
  Pairs owners_;  // the same pairs, by what is tied
};

}  // namespace cohort::internal
