// Reads a pipeline and nothing else: cohort::data is enough.
#include <cohort/data.h>

#include <iostream>

int main() {
  std::int64_t sum = 0;
  for (const cohort::Structure& batch : cohort::data::Dataset::range(9).batch(2)) {
    sum += batch.tensor().sum().item<std::int64_t>();
  }
  std::cout << "cohort " << COHORT_VERSION << ": sum " << sum << '\n';
}
