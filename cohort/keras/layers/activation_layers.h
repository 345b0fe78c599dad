// Activation functions that have options, as layers.
//
//   layers::LeakyReLU(0.2);
//   layers::ReLU({.max_value = 6});
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/keras/layers/base/layer_handle.h"

namespace cohort::keras::layers {

// All of them: Shape: [..], floating -> the same.

struct ReLUOptions {
  std::optional<double> max_value = std::nullopt;  // larger results are cut to it; not below 0
  double negative_slope = 0;                       // not below 0
  double threshold = 0;                            // not below 0
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};
// x above the threshold, else negative_slope * (x - threshold).
class COHORT_API ReLU : public LayerHandle {
 public:
  // Errors: InvalidArgument (an option below 0).
  explicit ReLU(ReLUOptions options = {});
  explicit ReLU(double max_value) : ReLU(ReLUOptions{.max_value = max_value}) {}
};

struct LeakyReLUOptions {
  double alpha = 0.3;  // the slope below 0
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};
// x above 0, else alpha * x.
class COHORT_API LeakyReLU : public LayerHandle {
 public:
  explicit LeakyReLU(LeakyReLUOptions options = {});
  explicit LeakyReLU(double alpha) : LeakyReLU(LeakyReLUOptions{.alpha = alpha}) {}
};

struct ELUOptions {
  double alpha = 1;  // minus it is the value far below 0
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};
// x above 0, else alpha * (exp(x) - 1).
class COHORT_API ELU : public LayerHandle {
 public:
  explicit ELU(ELUOptions options = {});
  explicit ELU(double alpha) : ELU(ELUOptions{.alpha = alpha}) {}
};

struct SoftmaxOptions {
  std::vector<int64_t> axis = {-1};  // the axes over which the results add up to 1
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};
// exp(x) over the sum of it. Of inputs of the shape of their mask, what is masked counts as minus
// infinity.
class COHORT_API Softmax : public LayerHandle {
 public:
  // Errors: InvalidArgument (no axis).
  explicit Softmax(SoftmaxOptions options = {});
};

}  // namespace cohort::keras::layers
