// Links both libraries: a strategy, and a pipeline.
#include <cohort/cohort.h>

namespace tf = cohort;

int main() {
  const tf::distribute::OneDeviceStrategy strategy("CPU:0");
  for (const tf::Structure& batch : tf::data::Dataset::range(9).batch(2)) {
    tf::print(strategy.run([](const tf::Tensor& numbers) { return numbers.sum(); }, batch));
  }
}
