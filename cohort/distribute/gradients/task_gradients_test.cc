// Gradients between tasks: the same bits however they arrive and travel.
#include <ATen/ops/full.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <ATen/ops/tensor.h>

#include "cohort/distribute/gradients/testing_task_gradients.h"
#include "cohort/ops/random.h"

namespace cohort::distribute {
namespace {

const std::vector<std::vector<int64_t>> kShapes{{3, 7}, {50, 4}, {5000}, {2}, {1}, {129}, {60, 3}};

// Dense, sparse on all, now and then missing, never there, changing from sparse to dense and back,
// sparse on some replicas only.
std::vector<Tensor> many_kinds(int replica, int step) {
  const auto generator = random::RandomGenerator::from_seed(100 * step + replica);
  const auto rows_of = [&](int64_t rows, int64_t width) {
    Tensor dense = generator.normal({rows, width});
    dense.slice(0, replica, rows - 7 + replica).zero_();
    return dense;
  };
  const Tensor changing = rows_of(60, 3);
  return {generator.normal({3, 7}),
          rows_of(50, 4).to_sparse(1),
          (step + replica) % 2 == 0 ? generator.normal({5000}) : Tensor(),
          Tensor(),
          step < 3 ? Tensor() : generator.normal({1}),
          generator.normal({129}),
          step % 3 == 0 || (step == 2 && replica == 0) ? changing.to_sparse(1) : changing};
}

INSTANTIATE_TEST_SUITE_P(Topologies, TaskGradients,
                         ::testing::Values(Topology{1, 2}, Topology{2, 1}, Topology{2, 2},
                                           Topology{3, 1}));

TEST_P(TaskGradients, GiveTheSameBitsHoweverTheyArriveAndArePacked) {
  const GradientTraining training{
      .topology = GetParam(), .shapes = kShapes, .gradients = many_kinds};
  const auto expected = train(training);
  expect_same(expected, expected);  // all tasks alike
  for (const Order& order : {Order(forward), Order(backward), Order(another_on_each_task)}) {
    for (const int64_t bytes_per_pack : {int64_t{1}, int64_t{600}, int64_t{0}}) {
      GradientTraining other = training;
      other.arrival = Arrival::kOneByOne;
      other.order = order;
      other.bytes_per_pack = bytes_per_pack;
      expect_same(train(other), expected);
    }
  }
}

TEST(TaskGradientsBits, TwoTasksDoWhatTwoReplicasOfOneTaskDo) {
  for (const DType dtype : {float32, float64}) {
    for (const double clipnorm : {0.0, 0.5}) {
      GradientTraining training{.shapes = kShapes,
                                .gradients =
                                    [&](int replica, int step) {
                                      auto gradients = many_kinds(replica, step);
                                      for (Tensor& one : gradients) {
                                        if (one.defined()) one = one.to(dtype);
                                      }
                                      return gradients;
                                    },
                                .arrival = Arrival::kOneByOne,
                                .order = backward,
                                .bytes_per_pack = 600,
                                .global_clipnorm = clipnorm,
                                .dtype = dtype};
      training.topology = {1, 2};
      const auto one = train(training);
      training.topology = {2, 1};
      expect_same(train(training), one);
    }
  }
}

// Whatever travels: rows alone give what the same numbers give as dense ones.
TEST(TaskGradientsBits, RowsGiveWhatDenseGradientsDo) {
  for (const Topology topology : {Topology{2, 1}, Topology{2, 2}, Topology{3, 1}}) {
    const auto gradients = [](bool sparse) {
      return [sparse](int replica, int step) -> std::vector<Tensor> {
        const auto generator = random::RandomGenerator::from_seed(10 * step + replica);
        const std::vector<int64_t> rows_of_replica{3, 17, replica, 3, 40 - replica};
        const Tensor ids = at::tensor(rows_of_replica, int64).reshape({1, 5});
        const Tensor rows = at::sparse_coo_tensor(ids, generator.normal({5, 6}), {41, 6});
        return {sparse ? rows : rows.to_dense()};
      };
    };
    GradientTraining training{
        .topology = topology, .shapes = {{41, 6}}, .gradients = gradients(true)};
    const auto of_rows = train(training);
    training.gradients = gradients(false);
    expect_same(of_rows, train(training));
  }
}

// Row 41: one replica's number decides for all.
TEST_P(TaskGradients, AStepThatIsNotFiniteAnywhereIsLeftOutEverywhere) {
  const int last = GetParam().replicas() - 1;
  for (const bool sparse : {false, true}) {
    GradientTraining training{
        .topology = GetParam(),
        .shapes = {{9, 2}, {4}},
        .gradients = [&](int replica, int step) -> std::vector<Tensor> {
          const bool odd = replica == last && step % 2 == 1;
          const Tensor rows = at::full({9, 2}, odd ? std::nan("") : 1.0, float32);
          return {sparse ? rows.to_sparse(1) : rows, at::ones({4})};
        },
        .arrival = Arrival::kOneByOne,
        .skip_not_finite = true};
    const auto results = train(training);
    expect_same(results, results);
    for (const auto& task : results) {
      for (int step = 0; step < 6; ++step) {
        EXPECT_EQ(task.back()[step][1].item<double>(), step % 2 == 0 ? 1 : 0) << step;
      }
      EXPECT_TRUE(task[0].isfinite().all().item<bool>());
    }
  }
}

}  // namespace
}  // namespace cohort::distribute
