#include "cohort/data/files/example_keys.h"

#include <unordered_set>

#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {

ExampleKeys::ExampleKeys(const io::ExampleFeatures& features) {
  std::unordered_set<std::string_view> names;
  for (size_t i = 0; i < features.size(); ++i) {
    if (!names.insert(features[i].first).second) {
      throw InvalidArgumentError(
          str("the feature ", quoted(features[i].first), " is asked for twice"));
    }
    const std::vector<std::string> keys = example_keys(features[i].first, features[i].second);
    for (size_t slot = 0; slot < keys.size(); ++slot) {
      const auto [found, is_new] = index_.emplace(keys[slot], uses_.size());
      if (is_new) {
        names_.push_back(keys[slot]);
        uses_.emplace_back();
      }
      uses_[found->second].push_back({i, slot});
    }
  }
}

size_t ExampleKeys::find(std::string_view name, size_t place) {
  if (place < tried_.size() && tried_[place] != kNone && names_[tried_[place]] == name) {
    return tried_[place];
  }
  const auto found = index_.find(name);
  const size_t key = found == index_.end() ? kNone : found->second;
  if (place < kMostTried) {
    if (place >= tried_.size()) tried_.resize(place + 1, kNone);
    tried_[place] = key;
  }
  return key;
}

}  // namespace cohort::internal
