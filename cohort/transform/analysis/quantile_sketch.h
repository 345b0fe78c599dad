// A summary of weighted numbers that tells quantiles with a bounded error; summaries are merged.
//
//   QuantileSketch sketch(0.01);
//   sketch.add(values, count, /*stride=*/1);
//   sketch.boundaries(4);      // three numbers
//   sketch.error();            // how far their ranks may be off, in weight
//
// Items (a value, a weight) lie in levels: level c has those of weight [2^c, 2^(c+1)). A level of k
// items is compacted: of three neighbours the middle one gets the weight of all, and moves up. That
// puts ranks wrong by one item's weight at most, which is at most 2/k of the weight compacted.
//
// How often is weight compacted? Three weights of a level have an entropy of at least 0.946 log 3,
// and all these entropies sum up to that of all N items in groups of at most 6/k of the weight W.
// So the rank of every value is wrong by
//
//   2 / k * (log3(N / k) + 1.64) / 0.946 * W
//
// at most, in whatever order values were added and sketches merged. k follows from this for an
// epsilon and 2^36 values. The sketch also adds up the errors that it really made, which are fewer:
// error() is a bound for the very values that it saw. With less than k values of a kind in each
// level nothing is compacted, and everything is exact: equal values are one item.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace cohort::internal {

// Thread safety: none.
class QuantileSketch {
 public:
  // epsilon in (0, 1].
  explicit QuantileSketch(double epsilon);

  // Values of weight 1; NaNs are passed over.
  template <class T>
  void add(const T* values, int64_t count, int64_t stride);
  // NaN, and weights that are not above 0, are passed over. `weight` is finite.
  void add(double value, double weight);
  void merge(const QuantileSketch& other);

  // For i in [1, num_buckets): the smallest value such that the weight up to it is above
  // i / num_buckets of all. Zeros where there are no values.
  std::vector<double> boundaries(int64_t num_buckets) const;
  double weight() const;  // of all values
  // The rank of each boundary is wrong by so much weight at most.
  double error() const { return error_; }
  size_t bytes() const;

  std::string saved() const;
  // Adds what saved() gave. Errors: DataLoss.
  void add_saved(std::string_view bytes, std::string_view what);

 private:
  struct Item {
    double value;
    double weight;
  };
  using Items = std::vector<Item>;  // in the order of values, each once
  using Levels = std::map<int, Items>;
  class Divider;

  void flush();
  // Puts items in order into their levels, and compacts the full ones.
  void place(const Items& items);
  // Leaves the rest, at most two items; the others go to `up`.
  void compact(Items& level, Levels& up);
  // All items in one list.
  Items all_items() const;

  static Items merged(const Items& a, const Items& b);
  static Items sorted(Items items);

  size_t least_compacted_;  // k
  Levels levels_;
  std::vector<double> values_;  // of weight 1, not yet in a level
  std::vector<double> scratch_;
  Items weighted_;     // the same, with weights
  double weight_ = 0;  // in the levels
  double error_ = 0;
};

}  // namespace cohort::internal
