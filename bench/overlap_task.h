// What bench_overlap measures: a task whose gradients take as long to travel as the backward pass
// takes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cohort/core/structure/tensor.h"
#include "cohort/distribute/strategies/strategy.h"
#include "cohort/distribute/variables/variable.h"
#include "cohort/keras/optimizers/optimizers.h"

namespace bench {

inline constexpr int kOverlapTasks = 2, kOverlapLayers = 12, kOverlapWidth = 512;
inline constexpr double kOverlapBytes =
    double{kOverlapLayers} * kOverlapWidth * kOverlapWidth * sizeof(float);

// All threads that this one starts stay there, too.
void stay_on_core(int core);

// Milliseconds.
struct OverlapTimes {
  double backward = 0;    // the backward pass alone
  double compute = 0;     // a step over a link without limit
  double exchange = 0;    // a step that brings gradients and computes none, over the slow link
  double overlapped = 0;  // a step over the slow link
  double afterwards = 0;  // the same, exchanging after the backward pass
};

// Prints them, and returns what the program ends with: 0 where a step with overlap takes at most
// 1.2 times the longer of computing and exchange.
int report(const OverlapTimes& times, double bytes_per_second, const std::string& over);

class OverlapTask {
 public:
  // meet: waits for the other tasks, so that they begin a step together. COLLECTIVE over the tasks,
  // as what follows. The strategy must outlive it.
  OverlapTask(const cohort::distribute::Strategy& strategy, std::function<void()> meet);

  // Each is the median of some rounds, in milliseconds.
  double step(bool overlap);
  double exchange();
  double backward();

 private:
  cohort::Tensor forward() const;
  double time(const std::function<void()>& step);

  const cohort::distribute::Strategy& strategy_;
  const std::function<void()> meet_;
  const cohort::Tensor input_;
  std::vector<cohort::distribute::Variable> layers_;
  cohort::keras::optimizers::SGD optimizer_;
};

}  // namespace bench
