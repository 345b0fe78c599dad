// What Dataset::group_by_reducer computes of the elements of one key.
//
//   data::Reducer mean([](int64_t key) { return tuple(0., 0); },
//                      [](const Structure& state, double x) {
//                        return tuple(state[0].tensor() + x, state[1].tensor() + 1);
//                      },
//                      [](double sum, int64_t count) { return sum / count; });
#pragma once

#include <utility>

#include "cohort/core/export.h"
#include "cohort/data/element_function.h"

namespace cohort::data {

// init_func(key) returns the state that a key begins with, reduce_func(state, element) the next
// one, of the same form and dtypes, and finalize_func(state) the element that comes out.
// Thread safety: that of the functions.
class COHORT_API Reducer {
 public:
  template <class Init, class Reduce, class Finalize>
  Reducer(Init&& init_func, Reduce&& reduce_func, Finalize&& finalize_func)
      : init_func_(internal::make_element_function(std::forward<Init>(init_func))),
        reduce_func_(internal::make_element_function(std::forward<Reduce>(reduce_func))),
        finalize_func_(internal::make_element_function(std::forward<Finalize>(finalize_func))) {}

  Structure init(int64_t key) const { return init_func_.whole(Structure(key)); }
  Structure reduce(const Structure& state, const Structure& element) const {
    return reduce_func_.whole(Structure::make_tuple({state, element}));
  }
  Structure finalize(const Structure& state) const { return finalize_func_.whole(state); }

 private:
  internal::ElementFunction init_func_, reduce_func_, finalize_func_;
};

}  // namespace cohort::data
