#include "cohort/data/iterator.h"

#include "cohort/core/error.h"
#include "cohort/data/indexed.h"
#include "cohort/data/skip_rest.h"
#include "cohort/data/stacking.h"

namespace cohort::internal {

void collect(DataIterator& input, int64_t n, std::vector<Structure>& elements) {
  Structure element;
  while (std::ssize(elements) < n) {
    try {
      if (!input.next(element)) return;
    } catch (const InputDeadlineExceeded&) {  // each of the rest would wait as long
      throw;
    } catch (...) {
      const int64_t rest = n - std::ssize(elements) - 1;
      elements.clear();
      skip_rest(input, rest);
      throw;
    }
    elements.push_back(std::move(element));
  }
}

int64_t DataIterator::next_block(int64_t n, Structure& out) {
  std::vector<Structure> elements;
  try {
    collect(*this, n, elements);
  } catch (const InputDeadlineExceeded&) {  // it comes again after those that did come
    if (elements.empty()) throw;
  }
  if (elements.empty()) return 0;
  const auto count = static_cast<int64_t>(elements.size());
  out = stack_elements(elements, Positions::run(0, count));
  return count;
}

int64_t DataIterator::skip(int64_t n) {
  Structure scratch;
  for (int64_t skipped = 0; skipped < n; ++skipped) {
    try {
      if (!next(scratch)) return skipped;
    } catch (const InputDeadlineExceeded&) {  // not of an element: nothing was passed over
      throw;
    } catch (const std::exception&) {
      // An element that nobody wants may fail.
    }
  }
  return n;
}

}  // namespace cohort::internal
