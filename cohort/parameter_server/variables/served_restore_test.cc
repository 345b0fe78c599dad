// How variables on ps tasks are saved and restored.
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"
#include "cohort/data/testing_files.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/parameter_server/variables/sharded_variable.h"
#include "cohort/parameter_server/variables/testing_two_shards.h"
#include "cohort/train/checkpoint.h"

namespace cohort::distribute {
namespace {

using ::testing::HasSubstr;

class ServedRestoreTest : public data::FilesTest, protected TwoShards {};

TEST_F(ServedRestoreTest, RestoresIntoAnyNumberOfShards) {
  const Variable v = table();
  const std::string path = train::Checkpoint({{"v", v}}).save(directory + "/ckpt");
  const auto restore = [&](const std::vector<Variable>& parts) {
    const ShardedVariable other(parts);
    train::Checkpoint({{"v", other}}).restore(path).assert_consumed();
    return other.value();
  };
  const auto zeros = [](int64_t rows) { return Variable(at::zeros({rows, 2})); };
  EXPECT_TRUE(at::equal(restore({zeros(5)}), v.value()));
  EXPECT_TRUE(at::equal(restore({zeros(1), zeros(4)}), v.value()));
  EXPECT_TRUE(at::equal(restore({zeros(1), zeros(1), zeros(1), zeros(1), zeros(1)}), v.value()));
  v.assign_add(at::ones({5, 2}));
  train::Checkpoint({{"v", ShardedVariable::of(v)}}).restore(path).assert_consumed();
  EXPECT_TRUE(at::equal(v.value(), at::arange(10, float32).reshape({5, 2})));
}

// The ps tasks have what a step assigns after it; what they were to have meanwhile it would write
// over.
TEST_F(ServedRestoreTest, IsSavedAndRestoredOutsideOfStepsOnly) {
  const Variable v = table();
  const Tensor old = v.value();
  const train::Checkpoint whole({{"v", v}});
  const train::Checkpoint part({{"v", v.shards()[1]}});
  const std::string path = whole.save(directory + "/whole");
  const std::string part_path = part.save(directory + "/part");
  const auto in_merge_call = [&](const std::function<void()>& fn) {
    strategy_.run([&](ReplicaContext& replica) {
      replica.merge_call([&](Strategy&) {
        v.assign_add(at::ones({5, 2}));
        fn();
      });
    });
  };
  const auto refused = [&](const std::function<void()>& fn) {
    return thrown<FailedPreconditionError>([&] { in_merge_call(fn); });
  };
  EXPECT_THAT(refused([&] { whole.save(directory + "/whole"); }),
              HasSubstr("'table' was to be saved in a step"));
  EXPECT_THAT(refused([&] { part.save(directory + "/part"); }),
              HasSubstr("'table/part_1' was to be saved in a step"));
  EXPECT_THAT(refused([&] { whole.restore(path); }),
              HasSubstr("'table' was to be restored in a step"));
  EXPECT_THAT(refused([&] { part.restore(part_path); }),
              HasSubstr("'table/part_1' was to be restored in a step"));
  EXPECT_TRUE(at::equal(v.value(), old));  // nothing of a step that throws counts
  in_merge_call([] {});
  EXPECT_TRUE(at::equal(v.value(), old + 1));
  whole.restore(path).assert_consumed();
  EXPECT_TRUE(at::equal(v.value(), old));
}

// A layer that is built in a step has its value from an earlier restore.
TEST_F(ServedRestoreTest, WhatAStepMakesIsRestoredInIt) {
  const auto saved = std::make_shared<train::TrackableList>();
  const Variable v = table();
  saved->add(v.impl());
  const std::string path = train::Checkpoint({{"list", saved}}).save(directory + "/ckpt");
  const auto list = std::make_shared<train::TrackableList>();
  train::Checkpoint({{"list", list}}).restore(path).expect_partial();
  std::optional<Variable> made;
  strategy_.run([&](ReplicaContext& replica) {
    replica.merge_call([&](Strategy&) {
      made.emplace(at::zeros({5, 2}), VariableOptions{.name = "made"});
      list->add(made->impl());
    });
  });
  EXPECT_TRUE(at::equal(made->value(), v.value()));
}

}  // namespace
}  // namespace cohort::distribute
