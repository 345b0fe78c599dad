// What data's tests share.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/testing_errors.h"
#include "cohort/data/dataset.h"
#include "cohort/data/graph/node.h"

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

// What each call of next() comes to until the end: an element's printed form, or "CLASS: text" of
// an error. next() returns a std::optional<Structure>.
template <class Next>
std::vector<std::string> outcomes_of(const Next& next) {
  std::vector<std::string> all;
  while (true) {
    try {
      const std::optional<Structure> element = next();
      if (!element) return all;
      all.push_back(internal::str(*element));
    } catch (const Error& error) {
      all.push_back(internal::str(code_name(error.code()), ": ", error.what()));
    }
  }
}
inline std::vector<std::string> outcomes(internal::DataIterator& iterator) {
  return outcomes_of([&]() -> std::optional<Structure> {
    Structure element;
    if (!iterator.next(element)) return std::nullopt;
    return element;
  });
}
inline std::vector<std::string> outcomes(const Dataset& dataset) {
  auto iterator = dataset.iterator();
  return outcomes_of([&] { return iterator.next(); });
}

// Restored from bytes in a new iterator of an equal dataset, any position goes on as it would have.
inline void expect_resumable(const std::function<Dataset()>& make) {
  const Dataset dataset = make();
  const std::vector<std::string> all = texts(make());
  auto iterator = dataset.iterator();
  for (size_t position = 0; position <= all.size(); ++position) {
    const std::string bytes = iterator.state().serialize();
    auto restored = make().iterator();
    restored.restore(IteratorState::parse(bytes));
    EXPECT_EQ(restored.state().serialize().size(), bytes.size())
        << "at position " << position << " of " << dataset.explain();
    ASSERT_EQ(texts(restored), std::vector<std::string>(all.begin() + position, all.end()))
        << "from position " << position << " of " << dataset.explain();
    const auto element = iterator.next();
    ASSERT_EQ(element.has_value(), position < all.size());
    if (element) {
      ASSERT_EQ(internal::str(*element), all[position]);
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
