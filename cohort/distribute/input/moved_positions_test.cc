// Positions of input in checkpoints that others restore: other numbers of tasks, replicas or both.
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "cohort/core/text.h"
#include "cohort/data/files/tfrecord_dataset.h"
#include "cohort/data/testing_files.h"
#include "cohort/distribute/input/distributed_dataset.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/testing_batches.h"
#include "cohort/distribute/testing_errors.h"
#include "cohort/distribute/testing_tasks.h"
#include "cohort/ops/random.h"
#include "cohort/train/checkpoint.h"

namespace cohort::distribute {
namespace {

using data::AutoShardPolicy;
using data::Dataset;
using ::testing::HasSubstr;

// The group that reads.
struct Group {
  int tasks;
  int replicas_each;
  int elastic = 0;
};
std::string name_of(const Group& group) {
  return group.elastic > 0
             ? internal::str(group.elastic, " replicas on ", group.tasks, " tasks")
             : internal::str(group.tasks, " tasks of ", group.replicas_each, " replicas");
}

constexpr Group kGroups[] = {{1, 1}, {1, 3}, {2, 1}, {3, 1}, {2, 2}, {2, 0, 5}};

// The rows of each step, whichever replicas got them.
using RowSteps = std::vector<std::vector<int64_t>>;
using Make = std::function<DistributedIterator(const Strategy&)>;

RowSteps steps_of(const Strategy& strategy, DistributedIterator& iterator, int most) {
  RowSteps steps;
  for (int i = 0; i < most; ++i) {
    const auto batch = iterator.next();
    if (!batch) break;
    const auto same = strategy.run([](ReplicaContext&, const Tensor& x) { return x; }, *batch);
    const Tensor rows = strategy.gather(same, 0);
    std::vector<int64_t>& step = steps.emplace_back();
    for (int64_t row = 0; row < rows.size(0); ++row) step.push_back(rows[row].item<int64_t>());
    std::sort(step.begin(), step.end());
  }
  return steps;
}

struct Part {
  std::string from;  // a checkpoint; empty: the beginning
  int most = 100;    // steps
  std::string to = {};
  bool looks = false;  // before it saves, whether there is another
};

RowSteps run(const Group& group, const Make& make, const Part& part) {
  RowSteps steps;
  run_all_tasks(group.tasks, std::max(group.replicas_each, 1),
                [&](const Strategy& strategy, int task) {
                  DistributedIterator iterator = make(strategy);
                  const train::Checkpoint checkpoint({{"input", iterator}});
                  if (!part.from.empty()) checkpoint.restore(part.from).assert_consumed();
                  RowSteps own = steps_of(strategy, iterator, part.most);
                  if (part.looks) iterator.has_next();
                  if (!part.to.empty()) checkpoint.write(part.to);
                  if (task == 0) steps = std::move(own);
                },
                {.elastic_replicas = group.elastic});
  return steps;
}

std::vector<int64_t> rows_of(const RowSteps& steps) {
  std::vector<int64_t> rows;
  for (const auto& step : steps) rows.insert(rows.end(), step.begin(), step.end());
  std::sort(rows.begin(), rows.end());
  return rows;
}
std::vector<int64_t> count(int64_t rows) {
  std::vector<int64_t> all(static_cast<size_t>(rows));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

Make divided(const Dataset& dataset) {
  return [dataset](const Strategy& strategy) {
    return strategy.experimental_distribute_dataset(dataset).iterator();
  };
}

struct MovedPositions : data::FilesTest {
  // Reads some steps with one group, a few with another, and the rest with a third.
  RowSteps read_by(const Group& first, const Group& second, const Make& make, int taken,
                   bool looks) {
    RowSteps steps =
        run(first, make, {.from = "", .most = taken, .to = path("first"), .looks = looks});
    for (const Part& part : {Part{.from = path("first"), .most = 2, .to = path("second")},
                             Part{.from = path("second")}}) {
      const RowSteps more = run(part.to.empty() ? first : second, make, part);
      steps.insert(steps.end(), more.begin(), more.end());
    }
    return steps;
  }
};

TEST_F(MovedPositions, GoOnAtTheSameStepWhoeverReads) {
  const Dataset datasets[] = {
      Dataset::range(55).batch(12),
      Dataset::range(47).shuffle(20, {.seed = 4}).batch(12).prefetch(1),
      Dataset::range(60)
          .filter([](int64_t x) { return x % 7 != 3; })
          .shuffle(9, {.seed = 2})
          .batch(8)
          .repeat(2),
      Dataset::range(30)
          .map(
              [](const random::RandomGenerator& generator, const Tensor&) {
                return generator.uniform({}, {.maxval = 1000000, .dtype = int64});
              },
              {.seed = 3})
          .batch(6),
  };
  for (const Dataset& dataset : datasets) {
    SCOPED_TRACE(dataset.explain());
    const Make make = divided(dataset);
    const RowSteps undisturbed = run({1, 1}, make, {.from = ""});
    bool looks = false;
    for (const Group& first : kGroups) {
      EXPECT_EQ(run(first, make, {.from = ""}), undisturbed) << name_of(first);
      for (const Group& second : kGroups) {
        looks = !looks;
        EXPECT_EQ(read_by(first, second, make, looks ? 1 : 2, looks), undisturbed)
            << name_of(first) << ", then " << name_of(second) << looks;
      }
      looks = !looks;
    }
  }
}

TEST_F(MovedPositions, AllRowsAreReadOnceWhoeverGoesOn) {
  // Each process draws another order here, as without a seed.
  const Make make = [](const Strategy& strategy) {
    return strategy.experimental_distribute_dataset(Dataset::range(53).shuffle(16).batch(12))
        .iterator();
  };
  for (const Group& first : kGroups) {
    for (const Group& second : kGroups) {
      EXPECT_EQ(rows_of(read_by(first, second, make, 1, true)), count(53))
          << name_of(first) << ", then " << name_of(second);
    }
  }
}

TEST_F(MovedPositions, TheEndIsTheEndForAll) {
  const Make make = divided(Dataset::range(20).shuffle(20, {.seed = 1}).batch(6));
  for (const Group& first : kGroups) {
    run(first, make, {.from = "", .to = path("end")});
    for (const Group& second : kGroups) {
      EXPECT_EQ(run(second, make, {.from = path("end")}), RowSteps()) << name_of(first);
    }
  }
}

TEST_F(MovedPositions, LaterPassesAreThoseThatWouldHaveFollowed) {
  const Dataset dataset = Dataset::range(20).shuffle(20, {.seed = 1}).batch(6);
  const auto passes = [&](const Group& group, const std::string& from, const std::string& to) {
    RowSteps steps;
    run_all_tasks(group.tasks, std::max(group.replicas_each, 1),
                  [&](const Strategy& strategy, int task) {
                    const auto distributed = strategy.experimental_distribute_dataset(dataset);
                    DistributedIterator first = distributed.iterator();
                    const train::Checkpoint checkpoint({{"input", first}});
                    if (!from.empty()) checkpoint.restore(from);
                    RowSteps own = steps_of(strategy, first, 1);
                    if (!to.empty()) return static_cast<void>(checkpoint.write(to));
                    const RowSteps end = steps_of(strategy, first, 100);
                    own.insert(own.end(), end.begin(), end.end());
                    DistributedIterator next = distributed.iterator();
                    const RowSteps more = steps_of(strategy, next, 100);
                    own.insert(own.end(), more.begin(), more.end());
                    if (task == 0) steps = own;
                  },
                  {.elastic_replicas = group.elastic});
    return steps;
  };
  const RowSteps undisturbed = passes({1, 1}, "", "");
  for (const Group& first : kGroups) {
    passes(first, "", path("begun"));
    for (const Group& second : kGroups) {
      const RowSteps rest = passes(second, path("begun"), "");
      EXPECT_EQ(rest, RowSteps(undisturbed.begin() + 1, undisturbed.end()))
          << name_of(first) << ", then " << name_of(second);
    }
  }
}

TEST_F(MovedPositions, APlainIteratorGoesOnAsWell) {
  const Dataset dataset = Dataset::range(55).shuffle(9, {.seed = 3}).batch(12);
  data::DatasetIterator undisturbed = dataset.iterator();
  for (int i = 0; i < 2; ++i) undisturbed.next();
  const std::string third = internal::str(undisturbed.get_next());
  for (const Group& group : kGroups) {
    run(group, divided(dataset), {.from = "", .most = 2, .to = path("ckpt"), .looks = true});
    data::DatasetIterator plain = dataset.iterator();
    train::Checkpoint({{"input", plain}}).restore(path("ckpt")).assert_consumed();
    EXPECT_EQ(internal::str(plain.get_next()), third) << name_of(group);
  }
}

TEST_F(MovedPositions, OfAnotherDatasetIsRefused) {
  run({2, 1}, divided(Dataset::range(20).batch(4)), {.from = "", .most = 1, .to = path("ckpt")});
  run_all_tasks(3, 1, [&](const Strategy& strategy, int) {
    DistributedIterator other = divided(Dataset::range(21).batch(4))(strategy);
    EXPECT_THAT(refused([&] {
                  train::Checkpoint({{"input", other}}).restore(path("ckpt"));
                }),
                HasSubstr("where it has 'range(start=0, stop=20, step=1)'"));
    EXPECT_EQ(steps_of(strategy, other, 1)[0].size(), 4u);
  });
}

// Rows 0 to 52 in six files.
Dataset of_files(const data::FilesTest& files, bool shuffled) {
  std::vector<std::string> names;
  int64_t row = 0;
  for (int file = 0; file < 6; ++file) {
    std::vector<std::string> records;
    for (int i = 0; i < (file == 5 ? 3 : 10); ++i) records.push_back(internal::str(row++));
    names.push_back(files.write_records(internal::str("rows", file), records));
  }
  Dataset rows = Dataset::from_tensor_slices(StringTensor(names))
                     .interleave([](const StringTensor& name) {
                       return data::TFRecordDataset(std::string(name.item()));
                     })
                     .map([](const StringTensor& record) {
                       return at::full({}, std::stol(std::string(record.item())), at::kLong);
                     });
  if (shuffled) rows = rows.shuffle(8);
  return rows.batch(6);
}

// Workers that read files of their own have read different parts of them.
TEST_F(MovedPositions, RowsOfFilesAreReadOnceWhoeverGoesOn) {
  for (const bool shuffled : {false, true}) {
    const Dataset dataset = of_files(*this, shuffled);
    int taken = 0;
    for (const Group& first : kGroups) {
      for (const Group& second : kGroups) {
        taken = taken % 3 + 1;
        const RowSteps steps = read_by(first, second, divided(dataset), taken, taken % 2 == 0);
        EXPECT_EQ(rows_of(steps), count(53))
            << name_of(first) << ", then " << name_of(second) << " after " << taken;
      }
    }
  }
}

// A position in what others have left is one that others go on from.
TEST_F(MovedPositions, RowsOfFilesAreReadOnceByAChainOfGroups) {
  const Make make = divided(of_files(*this, true));
  constexpr Group kChain[] = {{2, 1}, {3, 1}, {1, 2}, {2, 0, 5}, {2, 2}, {1, 1}};
  std::vector<int64_t> rows;
  std::string from;
  for (const Group& group : kChain) {
    const std::string to = path(internal::str("after", rows.size()));
    const RowSteps steps = run(group, make, {.from = from, .most = 1, .to = to, .looks = true});
    for (const auto& step : steps) rows.insert(rows.end(), step.begin(), step.end());
    from = to;
  }
  const RowSteps rest = run({3, 1}, make, {.from = from});
  for (const auto& step : rest) rows.insert(rows.end(), step.begin(), step.end());
  std::sort(rows.begin(), rows.end());
  EXPECT_EQ(rows, count(53));
  EXPECT_GT(rest.size(), 1u);
}

Make from_functions(InputReplicationMode mode) {
  return [mode](const Strategy& strategy) {
    return strategy
        .distribute_datasets_from_function(
            [](const InputContext& context) {
              return Dataset::range(48)
                  .shard(context.num_input_pipelines, context.input_pipeline_id)
                  .shuffle(5, {.seed = 2})
                  .batch(2);
            },
            {.experimental_replication_mode = mode})
        .iterator();
  };
}

// Equally many pipelines are equally many positions, whatever tasks they are in.
TEST_F(MovedPositions, OfADatasetFunctionFitAsManyPipelines) {
  const Make of_replicas = from_functions(InputReplicationMode::PER_REPLICA);
  const RowSteps undisturbed = run({1, 4}, of_replicas, {.from = ""});
  constexpr Group kOfFour[] = {{1, 4}, {2, 2}, {4, 1}, {1, 0, 4}, {3, 0, 4}};
  for (const Group& first : kOfFour) {
    for (const Group& second : kOfFour) {
      EXPECT_EQ(read_by(first, second, of_replicas, 2, true), undisturbed)
          << name_of(first) << ", then " << name_of(second);
    }
  }
  const Make of_workers = from_functions(InputReplicationMode::PER_WORKER);
  EXPECT_EQ(rows_of(read_by({2, 1}, {2, 3}, of_workers, 2, true)), count(48));
}

TEST_F(MovedPositions, OfADatasetFunctionOfOthersAreRefusedBeforeTheFirstStep) {
  const Make make = from_functions(InputReplicationMode::PER_WORKER);
  run({2, 1}, make, {.from = "", .most = 1, .to = path("two")});
  run({1, 2}, make, {.from = "", .most = 1, .to = path("one")});
  const auto refused_by = [&](int tasks, const std::string& from, const std::string& text) {
    run_all_tasks(tasks, 1, [&](const Strategy& strategy, int) {
      DistributedIterator iterator = make(strategy);
      const std::string message = refused([&] {
        train::Checkpoint({{"input", iterator}}).restore(path(from));
      });
      EXPECT_THAT(message, HasSubstr(text));
      EXPECT_THAT(message, HasSubstr("leave the input out"));
    });
  };
  refused_by(1, "two", "position of 2 pipelines; here it is read by one undivided dataset");
  refused_by(3, "two", "position of 2 pipelines; here it is read by 3 pipelines");
  refused_by(2, "one", "position of one undivided dataset; here it is read by 2 pipelines");
}

}  // namespace
}  // namespace cohort::distribute
