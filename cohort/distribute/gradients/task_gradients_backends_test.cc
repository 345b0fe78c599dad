// Gradients between tasks over every backend: the bits that sockets give.
#include <ATen/ops/arange.h>
#include <ATen/ops/sparse_coo_tensor.h>

#include <string>
#include <vector>

#include "cohort/collective/testing_backends.h"
#include "cohort/distribute/gradients/testing_task_gradients.h"
#include "cohort/ops/random.h"

namespace cohort::distribute {
namespace {

class TaskGradientsOver : public ::testing::TestWithParam<collective::Backend> {};

// Buckets large enough that a backend looks for the memory in which they lie, while the leader
// takes more of it for the rows, of which each step has twice as many.
TEST_P(TaskGradientsOver, GiveTheSameBits) {
  constexpr int64_t kLarge = 60'000, kRows = 4000;
  GradientTraining training{
      .topology = {3, 1},
      .shapes = {{kLarge}, {kRows, 2}, {kLarge + 1}, {kLarge + 2}},
      .gradients =
          [](int replica, int step) {
            const auto generator = random::RandomGenerator::from_seed(100 * step + replica);
            const int64_t rows = int64_t{50} << step;
            return std::vector<Tensor>{
                generator.normal({kLarge}),
                at::sparse_coo_tensor(at::arange(rows).reshape({1, rows}) + replica,
                                      generator.normal({rows, 2}), {kRows, 2}),
                generator.normal({kLarge + 1}), generator.normal({kLarge + 2})};
          },
      .bytes_per_pack = 1};
  const auto expected = train(training);
  for (const Arrival arrival : {Arrival::kAtOnce, Arrival::kOneByOne}) {
    training.arrival = arrival;
    training.order = arrival == Arrival::kAtOnce ? forward : backward;
    training.connect = GetParam().make;
    expect_same(train(training), expected);
  }
}

// The strategy checks their calls itself.
INSTANTIATE_TEST_SUITE_P(All, TaskGradientsOver,
                         ::testing::ValuesIn(collective::unchecked_backends()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace cohort::distribute
