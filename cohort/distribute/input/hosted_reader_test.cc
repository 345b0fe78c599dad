// Readers that go on for other replicas than they began with: each replica gets what it would have
// got anyway.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "cohort/core/text.h"
#include "cohort/distribute/input/step_reader.h"
#include "cohort/distribute/testing_batches.h"
#include "cohort/distribute/testing_errors.h"
#include "cohort/distribute/testing_tasks.h"
#include "cohort/train/checkpoint.h"

namespace cohort::distribute {
namespace {

using collective::ReplicaRange;
using data::Dataset;
using ::testing::HasSubstr;

constexpr ReplicaRange kBefore = {0, 2}, kAfter = {1, 4};

using Make = std::function<DistributedIterator(const Strategy&)>;
using Program = std::function<void(const std::function<DistributedIterator()>& make)>;

// A task that could host all 6 replicas runs the program.
void with_replicas(const Make& make, const Program& program) {
  run_all_tasks(1, 1,
                [&](const Strategy& strategy, int) { program([&] { return make(strategy); }); },
                {.elastic_replicas = 6});
}

DistributedIterator global_batches(const Strategy& strategy, const Dataset& dataset) {
  return strategy.experimental_distribute_dataset(dataset).iterator();
}

// Datasets whose steps end with an uneven one.
std::vector<std::pair<std::string, Make>> kinds() {
  const auto of_policy = [](data::AutoShardPolicy policy) -> Make {
    return [policy](const Strategy& strategy) {
      return global_batches(
          strategy, with_policy(Dataset::range(50).shuffle(20, {.seed = 4}).batch(8), policy));
    };
  };
  return {
      {"AUTO", of_policy(data::AutoShardPolicy::AUTO)},
      {"DATA", of_policy(data::AutoShardPolicy::DATA)},
      {"read ahead, of two passes",
       [](const Strategy& strategy) {
         return global_batches(strategy, Dataset::range(23)
                                             .filter([](int64_t x) { return x % 7 != 3; })
                                             .shuffle(9, {.seed = 2})
                                             .batch(7)
                                             .prefetch(2)
                                             .repeat(2));
       }},
      {"a pipeline for each",
       [](const Strategy& strategy) {
         return strategy
             .distribute_datasets_from_function([](const InputContext& context) {
               return Dataset::range(76)
                   .shard(context.num_input_pipelines, context.input_pipeline_id)
                   .shuffle(5, {.seed = 2})
                   .batch(2)
                   .prefetch(1);
             })
             .iterator();
       }},
  };
}

std::vector<std::string> read(DistributedIterator& iterator, ReplicaRange range) {
  iterator.reader()->host(range);
  return all(iterator);
}

std::vector<std::string> rest(const std::vector<std::string>& steps, size_t first) {
  return {steps.begin() + static_cast<std::ptrdiff_t>(first), steps.end()};
}

TEST(HostedReader, GoesOnForOtherReplicas) {
  for (const auto& [name, make] : kinds()) {
    SCOPED_TRACE(name);
    with_replicas(make, [](const auto& make) {
      DistributedIterator undisturbed = make();
      const auto expected = read(undisturbed, kAfter);
      ASSERT_GT(expected.size(), 5u);
      for (size_t taken = 0; taken <= expected.size(); ++taken) {
        for (const bool looks : {false, true}) {
          DistributedIterator it = make();
          it.reader()->host(kBefore);
          for (size_t i = 0; i < taken; ++i) it.get_next();
          if (looks) it.has_next();
          EXPECT_EQ(read(it, kAfter), rest(expected, taken)) << taken << looks;
        }
      }
    });
  }
}

TEST(HostedReader, ReadsTheLastStepAgain) {
  for (const auto& [name, make] : kinds()) {
    SCOPED_TRACE(name);
    with_replicas(make, [](const auto& make) {
      DistributedIterator undisturbed = make();
      const auto expected = read(undisturbed, kAfter);
      for (size_t taken = 1; taken <= expected.size(); ++taken) {
        for (const bool looks : {false, true}) {
          DistributedIterator it = make();
          it.reader()->host(kBefore);
          for (size_t i = 0; i < taken; ++i) it.get_next();
          if (looks) it.has_next();
          it.reader()->restart_last();
          it.reader()->host({3, 6});
          it.reader()->restart_last();
          EXPECT_EQ(read(it, kAfter), rest(expected, taken - 1)) << taken << looks;
        }
      }
    });
  }
}

TEST(HostedReader, ReadsTheLastStepAgainAndAgain) {
  for (const auto& [name, make] : kinds()) {
    SCOPED_TRACE(name);
    with_replicas(make, [](const auto& make) {
      DistributedIterator undisturbed = make();
      const auto expected = read(undisturbed, kAfter);
      DistributedIterator it = make();
      std::vector<std::string> steps;
      for (int i = 0; it.has_next(); ++i) {
        it.reader()->host(i % 2 == 0 ? kBefore : kAfter);
        it.get_next();
        it.has_next();
        it.reader()->restart_last();
        EXPECT_EQ(it.reader()->steps(), i);
        it.reader()->host(kAfter);
        const std::string first = text(it.get_next());
        it.reader()->restart_last();
        steps.push_back(text(it.get_next()));
        EXPECT_EQ(first, steps.back());
      }
      EXPECT_EQ(steps, expected);
    });
  }
}

// What a step has changed in its pieces is not in them when the step is repeated.
TEST(HostedReader, ReadsWhatAStepChangedInPlace) {
  with_replicas(kinds()[0].second, [](const auto& make) {
    DistributedIterator undisturbed = make();
    const auto expected = all(undisturbed);
    DistributedIterator it = make();
    for (size_t i = 0; i < 3; ++i) {
      auto batch = it.get_next();
      it.has_next();
      for (const Structure& piece : batch.values()) piece.tensor().zero_();
    }
    it.reader()->restart_last();
    EXPECT_EQ(all(it), rest(expected, 2));
  });
}

TEST(HostedReader, StatesAreThoseOfAReaderThatWasLeftAlone) {
  for (const auto& [name, make] : kinds()) {
    SCOPED_TRACE(name);
    with_replicas(make, [](const auto& make) {
      DistributedIterator undisturbed = make();
      undisturbed.reader()->host(kAfter);
      for (int i = 0; i < 3; ++i) undisturbed.get_next();
      DistributedIterator it = make();
      it.reader()->host(kBefore);
      for (int i = 0; i < 4; ++i) it.get_next();
      it.has_next();
      it.reader()->host(kAfter);
      it.reader()->restart_last();
      const std::string before = undisturbed.state().serialize();
      EXPECT_EQ(it.state().serialize(), before);
      it.has_next();
      EXPECT_EQ(it.state().serialize(), before);
    });
  }
}

TEST(HostedReader, GoesOnFromACheckpoint) {
  const std::string path = internal::str(::testing::TempDir(), "hosted_reader_test_", ::getpid());
  for (const auto& [name, make] : kinds()) {
    SCOPED_TRACE(name);
    with_replicas(make, [&](const auto& make) {
      DistributedIterator undisturbed = make();
      const auto expected = read(undisturbed, kAfter);
      DistributedIterator saved = make();
      for (int i = 0; i < 2; ++i) saved.get_next();
      saved.has_next();
      train::Checkpoint({{"input", saved}}).write(path);
      DistributedIterator it = make();
      it.reader()->host(kBefore);
      it.get_next();
      train::Checkpoint({{"input", it}}).restore(path);
      EXPECT_THAT(thrown<FailedPreconditionError>([&] { it.reader()->restart_last(); }),
                  HasSubstr("no step was returned"));
      it.get_next();
      it.get_next();
      it.reader()->host(kAfter);
      it.reader()->restart_last();
      EXPECT_EQ(read(it, kAfter), rest(expected, 3));
    });
  }
}

TEST(HostedReader, LeavesAStepThatFailsOut) {
  const auto dataset = [](const Strategy& strategy) {
    return global_batches(strategy, Dataset::range(40)
                                        .map([](int64_t x) {
                                          if (x == 17) throw std::runtime_error("bad row");
                                          return x;
                                        })
                                        .batch(8));
  };
  with_replicas(dataset, [](const auto& make) {
    DistributedIterator it = make();
    it.reader()->host(kBefore);
    for (int i = 0; i < 2; ++i) it.get_next();
    it.has_next();
    it.reader()->host(kAfter);
    EXPECT_ANY_THROW(it.get_next());
    EXPECT_ANY_THROW(it.reader()->restart_last());
    EXPECT_EQ(text(it.get_next()), "[26,27][28,29][30,31]");
  });
}

TEST(HostedReader, IsForReplicasThatTasksHost) {
  run_all_tasks(1, 2, [](const Strategy& strategy, int) {
    DistributedIterator it = global_batches(strategy, Dataset::range(8).batch(4));
    it.get_next();
    EXPECT_THAT(thrown<FailedPreconditionError>([&] {
                  it.reader()->host({0, 1});
                }),
                HasSubstr("replicas that tasks host"));
    EXPECT_THAT(thrown<FailedPreconditionError>([&] { it.reader()->restart_last(); }),
                HasSubstr("replicas that tasks host"));
    EXPECT_EQ(text(it.get_next()), "[4,5][6,7]");
  });
}

// An iterator's own state says nothing of other replicas' pipelines.
TEST(HostedReader, AStateOfSomePipelinesIsOfThoseAlone) {
  with_replicas(kinds()[3].second, [](const auto& make) {
    DistributedIterator saved = make();
    saved.reader()->host(kBefore);
    saved.get_next();
    const auto state = saved.state();
    const std::string second = text(saved.get_next());
    DistributedIterator it = make();
    it.reader()->host(kBefore);
    it.restore(state);
    EXPECT_THAT(thrown<FailedPreconditionError>([&] { it.reader()->host(kAfter); }),
                HasSubstr("replica 2"));
    EXPECT_EQ(text(it.get_next()), second);
  });
}

}  // namespace
}  // namespace cohort::distribute
