// A lookup table's keys, values and index.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cohort/core/structure/leaf_type.h"
#include "cohort/core/structure/structure.h"
#include "cohort/ops/lookup/initializers.h"
#include "cohort/ops/lookup/key_index.h"

namespace cohort::internal {

// Thread safety: immutable.
class HashTable {
 public:
  // See lookup::StaticHashTable.
  HashTable(lookup::TableEntries entries, const Leaf& default_value);

  Leaf lookup(const Leaf& keys) const;
  int64_t size() const { return lines_ ? lines_->count : keys_.sizes()[0]; }
  LeafType key_type() const;
  LeafType value_type() const;
  // The table's own memory, but for lines that are mapped.
  Leaf keys() const;
  Leaf values() const;

 private:
  using Place = std::function<std::string(int64_t i)>;

  void check_default();
  template <class Key>
  void fill(KeyIndex<Key>& index, const Place& place);
  template <class Key>
  std::vector<int64_t> find(const Leaf& keys, int64_t count) const;
  // The row of each key; -1 where there is none.
  std::vector<int64_t> find(const Leaf& keys) const;
  Tensor find_lines(const StringTensor& keys) const;
  Tensor gather_numbers(const std::vector<int64_t>& rows, at::IntArrayRef shape) const;

  Leaf keys_;
  Leaf values_;
  Leaf default_;
  Leaf given_keys_;                   // what the index's views show
  std::optional<MappedLines> lines_;  // then the others are empty
  std::variant<KeyIndex<std::string_view>, KeyIndex<int64_t>> index_;
};

}  // namespace cohort::internal
