// A table from keys to values that never changes.
//
//   lookup::StaticHashTable table(
//       lookup::KeyValueTensorInitializer(StringTensor({"no", "yes"}), at::arange(2)), -1);
//   Tensor ids = table.lookup(StringTensor({"yes", "perhaps"}));   // 1, -1
//   dataset.map([table](const StringTensor& answer) { return table.lookup(answer); });
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <string_view>

#include "cohort/core/export.h"
#include "cohort/core/handle.h"
#include "cohort/core/structure/leaf_type.h"
#include "cohort/core/structure/structure.h"
#include "cohort/ops/lookup/initializers.h"

namespace cohort {
namespace internal {
class HashTable;
}

namespace lookup {

// A handle: copies name the same table. It holds the vocabulary once for all replicas and threads
// of a process; checkpoints do not contain it.
// Thread safety: immutable; lookups take no lock.
class COHORT_API StaticHashTable {
 public:
  // `default_value` is a single value of the values' kind: the result for keys that are not in the
  // table.
  // Errors: InvalidArgument (default_value is of another kind or not a single value; a key twice
  // with different values: names both entries), what the initializer throws.
  StaticHashTable(const TableInitializer& initializer, const Structure& default_value);
  template <std::convertible_to<std::string_view> Text>
  StaticHashTable(const TableInitializer& initializer, const Text& default_value)
      : StaticHashTable(initializer, Structure(StringTensor::scalar(default_value))) {}

  // Shapes: keys [..], of the table's kind -> values of the same shape, on the CPU. Tensors that
  // are returned, here and below, are the caller's own: a change of them leaves the table as it is.
  // Errors: InvalidArgument (keys of another kind).
  Structure lookup(const Structure& keys) const;
  Structure operator[](const Structure& keys) const { return lookup(keys); }

  int64_t size() const;
  LeafType key_dtype() const;
  LeafType value_dtype() const;
  // All entries, in the order of the initializer. Shapes: [size()].
  Leaf keys() const;
  Leaf values() const;

 private:
  internal::Handle<const internal::HashTable, "StaticHashTable"> table_;
};

}  // namespace lookup
}  // namespace cohort
