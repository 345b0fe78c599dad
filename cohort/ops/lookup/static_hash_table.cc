#include "cohort/ops/lookup/static_hash_table.h"

#include <utility>

#include "cohort/ops/lookup/hash_table.h"

namespace cohort {
namespace lookup {
namespace {

// A tensor of the table is the table's own; strings cannot be changed.
Leaf copy_of(const Leaf& leaf) { return leaf.is_tensor() ? Leaf(leaf.tensor().clone()) : leaf; }

}  // namespace

StaticHashTable::StaticHashTable(const TableInitializer& initializer,
                                 const Structure& default_value)
    : table_(
          std::make_shared<const internal::HashTable>(initializer.read(), default_value.leaf())) {}

Structure StaticHashTable::lookup(const Structure& keys) const {
  return table_->lookup(keys.leaf());
}

int64_t StaticHashTable::size() const { return table_->size(); }
LeafType StaticHashTable::key_dtype() const { return table_->key_type(); }
LeafType StaticHashTable::value_dtype() const { return table_->value_type(); }

Leaf StaticHashTable::keys() const { return copy_of(table_->keys()); }
Leaf StaticHashTable::values() const { return copy_of(table_->values()); }

}  // namespace lookup
}  // namespace cohort
