// The tensors of a checkpoint by the names that people read.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/train/bundle/bundle_reader.h"

namespace cohort::tools {

// Bytes of a tensor's elements, of all parts of a partitioned one together.
uint64_t tensor_bytes(const internal::BundleEntry& entry);
// "float32 [2, 3]", "float32 [2, 3] in 2 parts".
std::string describe(const internal::BundleEntry& entry);

// The tensors of a value, by the key that the graph of objects has for it: the tensor of that key,
// or else those whose keys begin with it (TensorFlow stores an iterator ".../ITERATOR" as
// ".../ITERATOR_STATE", a table as "...-keys" and "...-values"); `most` of them.
using Tensor = internal::BundleReader::Entries::value_type;
std::vector<const Tensor*> tensors_of(const internal::BundleReader& bundle,
                                      const std::string& checkpoint_key, size_t most);

class TensorNames {
 public:
  // `bundle` must outlive it.
  explicit TensorNames(const internal::BundleReader& bundle);

  // The readable key; where several tensors have the same one, the key as it stands in the file.
  std::string name(std::string_view key) const;
  // The key of what `name` means: a key as it stands in the file, or a readable one.
  // Errors: NotFound (nothing, or several; those are listed).
  std::string find(std::string_view name) const;

 private:
  const internal::BundleReader& bundle_;
  std::multimap<std::string, std::string_view, std::less<>> keys_;  // by readable key
};

}  // namespace cohort::tools
