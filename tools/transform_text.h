// Functions of transforms as people read them, and what differs between two of them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tools/stored_transform.h"

namespace cohort::tools {

// A name, in quotation marks where it is no single word.
std::string name_text(std::string_view name);
// "z_score(age, mean(age), variance(age))": how a step is made. Cut where it gets long.
std::string expression(const StoredTransform& transform, int step);
// "age weighted by income": what an analysis is of.
std::string subject(const StoredTransform& transform, const StoredTransform::Analysis& analysis);
// "quantiles of age (num_buckets=10, epsilon=0.01)".
std::string analysis_text(const StoredTransform& transform,
                          const StoredTransform::Analysis& analysis);

// Numbers for steps and analyses: those that compute the same have the same, in all transforms.
class EqualSteps {
 public:
  struct Numbers {
    std::vector<int> steps;
    std::vector<int> analyses;
  };
  Numbers number(const StoredTransform& transform);

 private:
  int number_of(const std::string& key) {
    return known_.emplace(key, static_cast<int>(known_.size())).first->second;
  }

  std::map<std::string, int> known_;
};

// A line for each column, output, kept statistic and analysis that only one of them has, or that
// differs.
std::vector<std::string> function_differences(const StoredTransform& a,
                                              const EqualSteps::Numbers& numbers_a,
                                              const StoredTransform& b,
                                              const EqualSteps::Numbers& numbers_b);

}  // namespace cohort::tools
