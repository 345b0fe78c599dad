// The axes of Strategy::reduce.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

namespace cohort::distribute {

// The dimensions over which reduce works inside each replica, before it reduces across replicas.
class ReduceAxis {
 public:
  ReduceAxis(std::nullopt_t) {}
  ReduceAxis(int64_t axis) : axes_{axis}, given_(true) {}
  ReduceAxis(int axis) : ReduceAxis(static_cast<int64_t>(axis)) {}
  ReduceAxis(std::initializer_list<int64_t> axes) : axes_(axes), given_(true) {}

  bool given() const { return given_; }
  const std::vector<int64_t>& axes() const { return axes_; }

 private:
  std::vector<int64_t> axes_;
  bool given_ = false;
};

}  // namespace cohort::distribute
