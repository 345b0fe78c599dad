// What data's tests share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cohort/core/testing_errors.h"
#include "cohort/data/dataset.h"
#include "cohort/data/nodes/node.h"

namespace cohort::data {

// The printed form of each element that is left.
inline std::vector<std::string> texts(DatasetIterator& iterator) {
  std::vector<std::string> all;
  while (auto element = iterator.next()) all.push_back(internal::str(*element));
  return all;
}
inline std::vector<std::string> texts(const Dataset& dataset) {
  auto iterator = dataset.iterator();
  return texts(iterator);
}

// The values of elements that are int64 tensors, one element after another.
inline std::vector<int64_t> ints(DatasetIterator& iterator) {
  std::vector<int64_t> all;
  while (auto element = iterator.next()) {
    const Tensor flat = element->tensor().contiguous();
    const auto* values = flat.data_ptr<int64_t>();
    all.insert(all.end(), values, values + flat.numel());
  }
  return all;
}
inline std::vector<int64_t> ints(const Dataset& dataset) {
  auto iterator = dataset.iterator();
  return ints(iterator);
}

// What each call of next() comes to until the end: an element's printed form, or an error's text.
inline std::vector<std::string> outcomes(internal::DataIterator& iterator) {
  std::vector<std::string> all;
  Structure element;
  while (true) {
    try {
      if (!iterator.next(element)) return all;
      all.push_back(internal::str(element));
    } catch (const Error& error) {
      all.emplace_back(error.what());
    }
  }
}

inline std::vector<std::string> outcomes(const Dataset& dataset) {
  auto iterator = dataset.iterator();
  std::vector<std::string> all;
  while (true) {
    try {
      const auto element = iterator.next();
      if (!element) return all;
      all.push_back(internal::str(*element));
    } catch (const Error& error) {
      all.emplace_back(error.what());
    }
  }
}

// An input that can only be read in order and only one by one, as files can.
inline Dataset sequential(const Dataset& dataset) {
  return dataset.filter([](const Structure&) { return true; });
}
// One that can only be read in order, but in blocks.
inline Dataset in_blocks(const Dataset& dataset) { return dataset.batch(3).unbatch(); }

}  // namespace cohort::data
