#include "tools/checkpoint_tensors.h"

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/train/objects/object_graph.h"
#include "tools/printable.h"

namespace cohort::tools {

using internal::BundleEntry;
using internal::quoted;
using internal::str;

uint64_t tensor_bytes(const BundleEntry& entry) {
  if (entry.slices.empty()) return entry.size;
  return internal::num_elements(entry.shape, "tensor") * internal::size_of(entry.type);
}

std::string describe(const BundleEntry& entry) {
  std::string text = internal::type_name(entry.type) + " " + shape_text(entry.shape);
  if (!entry.slices.empty()) text += " in " + counted(entry.slices.size(), "part");
  return text;
}

std::vector<const Tensor*> tensors_of(const internal::BundleReader& bundle,
                                      const std::string& checkpoint_key, size_t most) {
  const auto& entries = bundle.entries();
  std::vector<const Tensor*> found;
  for (auto next = entries.lower_bound(checkpoint_key);
       next != entries.end() && next->first.starts_with(checkpoint_key) && found.size() < most;
       ++next) {
    found.push_back(&*next);
    if (next->first == checkpoint_key) break;
  }
  return found;
}

TensorNames::TensorNames(const internal::BundleReader& bundle) : bundle_(bundle) {
  for (const auto& [key, entry] : bundle.entries()) {
    keys_.emplace(internal::readable_key(key), key);
  }
}

std::string TensorNames::name(std::string_view key) const {
  std::string readable = internal::readable_key(key);
  return keys_.count(readable) == 1 ? readable : std::string(key);
}

std::string TensorNames::find(std::string_view name) const {
  if (bundle_.contains(name)) return std::string(name);
  const auto [begin, end] = keys_.equal_range(name);
  if (begin == end) {
    throw NotFoundError(str("checkpoint '", bundle_.prefix(), "' has no tensor ", quoted(name),
                            "; `cohort checkpoint ls` lists them"));
  }
  if (std::next(begin) == end) return std::string(begin->second);
  std::string several;
  for (auto found = begin; found != end; ++found) several += str(" ", quoted(found->second));
  throw NotFoundError(str(quoted(name), " means several tensors; name one of", several));
}

}  // namespace cohort::tools
