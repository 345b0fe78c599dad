// The output's form: "[0,1] [2,3] | [4] [5]", a bracket a replica, a bar between two steps.
#pragma once

#include <cohort/cohort.h>

#include <string>

namespace examples {

// The values of a tensor with one dimension: "[0,1]".
std::string brackets(const cohort::Tensor& values);
// Its shape: "(4,1)".
std::string shape(const cohort::Tensor& tensor);

// One step: the replicas' values, or their shapes.
std::string step(const cohort::distribute::PerReplica<cohort::Tensor>& values);
std::string step(const cohort::distribute::PerReplica<cohort::Structure>& values);
std::string shapes(const cohort::distribute::PerReplica<cohort::Tensor>& values);

// Several steps.
class Steps {
 public:
  void add(const std::string& step) {
    if (!text_.empty()) text_ += " | ";
    text_ += step;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// All steps of a dataset.
std::string steps(const cohort::distribute::DistributedDataset& dataset);
std::string steps(const cohort::data::Dataset& dataset);

void line(const std::string& title, const std::string& result);

// A strategy over the first `count` of this machine's logical CPUs.
cohort::distribute::MirroredStrategy replicas(int count);

// The class of the error that `call` ends in.
template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const cohort::InvalidArgumentError&) {
    return "InvalidArgumentError";
  } catch (const cohort::OutOfRangeError&) {
    return "OutOfRangeError";
  }
  return "no error";
}

}  // namespace examples
