// Analyses by several tasks: threads of this process with what they share of a cluster.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <future>

#include "cohort/core/testing_errors.h"
#include "cohort/data/files/text_line_dataset.h"
#include "cohort/distribute/testing_tasks.h"
#include "cohort/parameter_server/cluster_coordinator.h"
#include "cohort/parameter_server/parameter_server_strategy.h"
#include "cohort/parameter_server/testing_cluster.h"
#include "cohort/transform/testing_columns.h"
#include "cohort/transform/testing_rows.h"

namespace cohort::transform {
namespace {

using distribute::ParameterServerStrategy;
using distribute::run_all_tasks;
using distribute::run_tasks;
using distribute::Strategy;
using distribute::TestingCluster;
using distribute::coordinator::ClusterCoordinator;
using internal::str;
using internal::TemporaryFolder;
using testing::AllOf;
using testing::HasSubstr;

data::Dataset with_policy(const data::Dataset& dataset, data::AutoShardPolicy policy) {
  data::Options options;
  options.experimental_distribute.auto_shard_policy = policy;
  return dataset.with_options(options);
}

// What tasks find together, of datasets that `dataset` makes for each of them.
std::string together(int tasks, const std::function<data::Dataset(int task)>& dataset,
                     const PreprocessingFunction& function) {
  const TemporaryFolder folder;
  run_all_tasks(tasks, 1, [&](const Strategy& strategy, int task) {
    const auto scope = strategy.scope();
    const auto output = analyze_dataset(dataset(task), function, folder / "output");
    EXPECT_GT(output.num_rows(), 0);
  });
  return contents_of(folder / "output");
}

std::string alone(const data::Dataset& dataset, const PreprocessingFunction& function) {
  const TemporaryFolder folder;
  analyze_dataset(dataset, function, folder / "output");
  return contents_of(folder / "output");
}

// The error of each task.
std::vector<std::string> errors_of(int tasks,
                                   const std::function<void(const Strategy&, int)>& program) {
  std::vector<std::string> texts;
  for (const std::exception_ptr& error : run_tasks(tasks, 1, program)) {
    texts.push_back(error ? internal::record_error(error).message : "");
  }
  return texts;
}

TEST(AnalyzeTogether, TasksFindToTheBitWhatOneProcessFinds) {
  const std::string expected = alone(mixed_batches(), exact_analyses);
  EXPECT_EQ(together(
                3, [](int) { return mixed_batches(); }, exact_analyses),
            expected);
  // In an order of the tasks' own.
  const auto shuffled = [](int) { return mixed_batches().shuffle(20); };
  EXPECT_EQ(together(2, shuffled, exact_analyses), expected);
}

TEST(AnalyzeTogether, ATaskMayHaveNothingToRead) {
  const auto few = [](int) { return mixed_batches(70); };  // three batches
  EXPECT_EQ(together(5, few, exact_analyses), alone(few(0), exact_analyses));
}

TEST(AnalyzeTogether, WithoutADivisionEachReadsItsOwnDataset) {
  const auto own = [](int task) {
    return with_policy(mixed_batches().shard(2, task), data::AutoShardPolicy::OFF);
  };
  EXPECT_EQ(together(2, own, exact_analyses), alone(mixed_batches(), exact_analyses));
}

TEST(AnalyzeTogether, FilesAreDividedWhereEachTaskGetsOne) {
  const TemporaryFolder folder;
  std::vector<std::string> paths;
  for (int file = 0; file < 3; ++file) {
    std::string text;
    for (int line = 0; line < 10 * (file + 1); ++line) text += str("t", line % 7, "\n");
    folder.write(str("part-", file), text);
    paths.push_back(folder / str("part-", file));
  }
  const auto lines = [&](int) {
    return data::TextLineDataset(paths).batch(4).map([](const StringTensor& line) {
      return dict({{"line", line}});
    });
  };
  const auto function = [](const Columns& in) {
    return Columns{{"i", compute_and_apply_vocabulary(in["line"])}};
  };
  for (const int tasks : {3, 4}) {
    EXPECT_EQ(together(tasks, lines, function), alone(lines(0), function)) << tasks;
  }
}

TEST(AnalyzeTogether, QuantilesAreWithinTheirBound) {
  const TemporaryFolder folder;
  const Tensor values = mixed_rows(4000)["wide"].tensor();
  run_all_tasks(3, 1, [&](const Strategy& strategy, int) {
    const auto scope = strategy.scope();
    const auto output = analyze_dataset(
        mixed_batches(4000),
        [](const Columns& in) {
          keep_statistic("q", quantiles(in["wide"], 10, {.epsilon = .01}));
          return Columns{{"wide", in["wide"]}};
        },
        folder / "output");
    const std::vector<double> boundaries = numbers(output.statistic("q"));
    ASSERT_EQ(boundaries.size(), 9);
    for (size_t i = 0; i < boundaries.size(); ++i) {
      const double rank = values.le(boundaries[i]).sum().item<double>() / 4000;
      EXPECT_NEAR(rank, .1 * static_cast<double>(i + 1), .011);
    }
  });
}

TEST(AnalyzeTogether, AnErrorOfOneIsThatOfAll) {
  const TemporaryFolder folder;
  analyze_dataset(mixed_batches(50), exact_analyses, folder / "output");
  const std::string before = contents_of(folder / "output");
  std::atomic<int> calls{0};
  const auto errors = errors_of(3, [&](const Strategy& strategy, int task) {
    const auto scope = strategy.scope();
    const auto failing = mixed_batches().map([&, task](const Structure& batch) -> Structure {
      if (task == 1 && ++calls > 10) throw DataLossError("record 7 is damaged");
      return batch;
    });
    analyze_dataset(failing, exact_analyses, folder / "output", {.overwrite = true});
  });
  EXPECT_THAT(errors, testing::Each(HasSubstr("record 7 is damaged")));
  EXPECT_THAT(errors[0], HasSubstr("analyze_dataset of task 1 failed: "));
  EXPECT_EQ(contents_of(folder / "output"), before);
}

TEST(AnalyzeTogether, OtherDatasetsAndOtherFunctionsAreRefused) {
  const TemporaryFolder folder;
  const auto differ = [&](int rows_of_one, double offset_of_one) {
    return errors_of(2, [&](const Strategy& strategy, int task) {
      const auto scope = strategy.scope();
      const double offset = task == 1 ? offset_of_one : 1;
      analyze_dataset(
          mixed_batches(task == 1 ? rows_of_one : 100),
          [&](const Columns& in) {
            return Columns{{"z", scale_to_0_1(in["x"] + offset)}};
          },
          folder / "output");
    });
  };
  EXPECT_THAT(differ(200, 1), testing::Each(HasSubstr("cardinality 7")));
  EXPECT_THAT(differ(100, 2), testing::Each(HasSubstr("analyze_dataset")));
  EXPECT_FALSE(std::filesystem::exists(folder / "output"));
}

TEST(AnalyzeTogether, ATaskThatDoesNotComeIsNamedInTime) {
  const TemporaryFolder folder;
  std::promise<void> other_ended;
  const auto errors = errors_of(2, [&](const Strategy& strategy, int task) {
    const auto scope = strategy.scope();
    if (task == 1) {
      other_ended.get_future().wait_for(std::chrono::seconds(60));
      return;
    }
    try {
      analyze_dataset(mixed_batches(100), exact_analyses, folder / "output",
                      {.timeout = std::chrono::milliseconds(200)});
    } catch (...) {
      other_ended.set_value();
      throw;
    }
  });
  EXPECT_THAT(errors[0], HasSubstr("task 1"));
}

class AnalyzeOnWorkers : public testing::Test {
 protected:
  std::string find(const std::function<data::Dataset(const distribute::InputContext&)>& dataset,
                   const PreprocessingFunction& function, const AnalyzeOptions& options = {}) {
    TestingCluster cluster(2, 1);
    const ParameterServerStrategy strategy(cluster.resolver());
    const auto rows = strategy.function("rows", dataset);
    const ClusterCoordinator coordinator(strategy);
    const auto output = analyze_dataset(coordinator, rows, function, folder_ / "output", options);
    EXPECT_GT(output.num_rows(), 0);
    return contents_of(folder_ / "output");
  }

  const TemporaryFolder folder_;
};

TEST_F(AnalyzeOnWorkers, ShardsGiveToTheBitWhatOneProcessFinds) {
  std::atomic<int> made{0};
  const auto rows = [&](const distribute::InputContext&) {
    ++made;
    return mixed_batches().shuffle(10);
  };
  EXPECT_EQ(find(rows, exact_analyses), alone(mixed_batches(), exact_analyses));
  EXPECT_EQ(made, 1 + 2 * 4);  // two phases, two shards a worker
}

TEST_F(AnalyzeOnWorkers, MoreShardsThanBatchesAreNoError) {
  const auto rows = [](const distribute::InputContext&) { return mixed_batches(70); };
  EXPECT_EQ(find(rows, exact_analyses, {.num_shards = 7}),
            alone(mixed_batches(70), exact_analyses));
}

TEST_F(AnalyzeOnWorkers, AFunctionMayDivideItsDatasetItself) {
  const auto rows = [](const distribute::InputContext& context) {
    return with_policy(
        mixed_batches().shard(context.num_input_pipelines, context.input_pipeline_id),
        data::AutoShardPolicy::OFF);
  };
  EXPECT_EQ(find(rows, exact_analyses), alone(mixed_batches(), exact_analyses));
}

TEST_F(AnalyzeOnWorkers, LargeVocabulariesTravelInFiles) {
  const auto rows = [](const distribute::InputContext&) {
    return data::Dataset::range(200).map([](int64_t batch) -> Structure {
      std::vector<std::string> tokens;
      for (int i = 0; i < 1000; ++i) {
        tokens.push_back(str("a token of some length, number ", batch * 1000 + i));
      }
      return dict({{"token", StringTensor(tokens)}});
    });
  };
  const auto function = [](const Columns& in) {
    return Columns{{"i", compute_and_apply_vocabulary(in["token"])}};
  };
  EXPECT_EQ(find(rows, function), alone(rows({}), function));
}

TEST_F(AnalyzeOnWorkers, AnErrorNamesTheShardAndLeavesTheDirectory) {
  std::atomic<int> calls{0};
  const auto rows = [&](const distribute::InputContext&) {
    return mixed_batches().map([&](const Structure& batch) -> Structure {
      if (++calls > 20) throw DataLossError("record 7 is damaged");
      return batch;
    });
  };
  EXPECT_THAT(thrown<DataLossError>([&] { find(rows, exact_analyses); }),
              AllOf(HasSubstr("'transform::analyze_dataset' on worker "), HasSubstr(": shard "),
                    HasSubstr("record 7 is damaged")));
  EXPECT_THAT(contents_of(folder_ / "output"), "");
  const auto endless = [](const distribute::InputContext&) { return mixed_batches().repeat(); };
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { find(endless, exact_analyses); }),
              HasSubstr("leave out repeat()"));
}

}  // namespace
}  // namespace cohort::transform
