// Python's iter and next, for datasets and distributed ones:
//
//   auto iterator = tf::iter(dist_dataset);
//   for (int step = 0; step < 10; ++step) strategy.run(train_step, tf::next(iterator));
#pragma once

namespace cohort {

// A new iterator, at the beginning.
template <class Dataset>
requires requires(const Dataset& dataset) { dataset.iterator(); }
auto iter(const Dataset& dataset) { return dataset.iterator(); }

// The next element or batch. Errors: those of the iterator's get_next(), which are OutOfRange at
// the end.
template <class Iterator>
requires requires(Iterator& iterator) { iterator.get_next(); }
auto next(Iterator&& iterator) { return iterator.get_next(); }

}  // namespace cohort
