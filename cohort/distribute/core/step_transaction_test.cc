#include "cohort/distribute/core/step_transaction.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <map>

#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

using collective::ReplicaRange;
using collective::SliceRange;

class Value final : public Undoable {
 public:
  const Tensor& value_to_keep() const override { return tensor; }
  void put_back() override { ++put_backs; }

  Tensor tensor = at::arange(10, at::kFloat);
  int put_backs = 0;
};

class States final : public Hosted {
 public:
  void write_state(int replica, std::string& out) const override { out += of.at(replica); }
  void read_state(int replica, std::string_view bytes) override { of[replica] = bytes; }
  void host(ReplicaRange range) override { hosted = range; }

  std::map<int, std::string> of = {{0, "a"}, {1, "bb"}, {2, "c"}};
  ReplicaRange hosted;
};

Tensor first_values() { return at::arange(10, at::kFloat); }

TEST(StepTransaction, KeepsNothingOutsideOfSteps) {
  StepTransaction transaction;
  Value value;
  transaction.keep(value);
  value.tensor.zero_();
  transaction.roll_back();
  EXPECT_EQ(value.put_backs, 0);
  EXPECT_EQ(transaction.keep_all_of(value), nullptr);
}

TEST(StepTransaction, PutsBackTheValueBeforeTheFirstChange) {
  StepTransaction transaction;
  Value value;
  for (int step = 0; step < 2; ++step) {
    transaction.begin({0, 0});
    transaction.keep(value);
    value.tensor.add_(1);
    transaction.keep(value);
    value.tensor.add_(1);
    transaction.roll_back();
    transaction.end();
    EXPECT_TRUE(at::equal(value.tensor, first_values()));
    EXPECT_EQ(value.put_backs, step + 1);
  }
}

TEST(StepTransaction, AStepThatEndsIsNotUndone) {
  StepTransaction transaction;
  Value value;
  transaction.begin({0, 0});
  transaction.keep(value);
  value.tensor.add_(1);
  transaction.end();
  transaction.roll_back();
  transaction.begin({0, 0});
  transaction.roll_back();
  EXPECT_TRUE(at::equal(value.tensor, first_values() + 1));
}

TEST(StepTransaction, PutsBackPartsAndLeavesTheRest) {
  StepTransaction transaction;
  Value value;
  transaction.begin({0, 0});
  const std::vector<SliceRange> parts = {{6, 8}, {1, 3}};
  transaction.keep_parts(value, parts);
  value.tensor.slice(0, 1, 3).zero_();
  value.tensor.slice(0, 6, 8).zero_();
  transaction.roll_back();
  EXPECT_TRUE(at::equal(value.tensor, first_values()));
}

TEST(StepTransaction, AChangeOfPartsAndThenOfAllIsUndoneWhole) {
  for (const bool parts_again : {false, true}) {
    StepTransaction transaction;
    Value value;
    transaction.begin({0, 0});
    const std::vector<SliceRange> parts = {{6, 8}, {1, 3}}, others = {{2, 9}};
    transaction.keep_parts(value, parts);
    value.tensor.slice(0, 1, 3).zero_();
    value.tensor.slice(0, 6, 8).zero_();
    parts_again ? transaction.keep_parts(value, others) : transaction.keep(value);
    value.tensor.slice(0, 2, 9).fill_(-1);
    transaction.roll_back();
    EXPECT_TRUE(at::equal(value.tensor, first_values())) << value.tensor;
  }
}

TEST(StepTransaction, PutsBackTheStatesOfOwnReplicas) {
  StepTransaction transaction;
  States states;
  transaction.add(states, "states");
  transaction.begin({0, 2});
  states.of[0] = "x";
  states.of[2] = "y";  // what another task has told
  transaction.roll_back();
  EXPECT_EQ(states.of[0], "a");
  EXPECT_EQ(states.of[2], "y");
  transaction.remove(states);
}

TEST(StepTransaction, ObjectsThatAreMadeInTheStepBeginAnew) {
  StepTransaction transaction;
  States states;
  transaction.begin({0, 2});
  transaction.add(states, "states");
  states.of[0] = "x";
  states.of[1] = "yy";
  transaction.roll_back();
  EXPECT_EQ(states.of[0], "a");
  EXPECT_EQ(states.of[1], "bb");
}

TEST(StepTransaction, StatesFindTheirObjectsByName) {
  StepTransaction here, there;
  States a, b, other_a, other_b;
  here.add(a, "a");
  here.add(b, "b");
  there.add(other_b, "b");  // made in another order
  there.add(other_a, "a");
  a.of[1] = "of a";
  b.of[1] = "of b";
  std::string written;
  here.write_states(1, written);
  there.read_states(1, written);
  EXPECT_EQ(other_a.of[1], "of a");
  EXPECT_EQ(other_b.of[1], "of b");
  EXPECT_THROW(there.read_states(1, std::string_view(written).substr(0, written.size() - 1)),
               DataLossError);
  here.host({1, 3});
  EXPECT_EQ(a.hosted, (ReplicaRange{1, 3}));
}

TEST(StepTransaction, TellsWhetherTheSameVariablesWereMade) {
  StepTransaction one, other;
  one.note_made("w", at::zeros({2}));
  one.note_made("b", at::zeros({3}));
  other.note_made("b", at::zeros({3}));
  other.note_made("w", at::zeros({2}));
  EXPECT_EQ(one.made().variables, other.made().variables);
  EXPECT_EQ(one.made().values, other.made().values);
  other.note_made("c", at::zeros({}));
  one.note_made("c", at::arange(1, 2));
  EXPECT_EQ(one.made().variables, other.made().variables);
  EXPECT_NE(one.made().values, other.made().values);
  EXPECT_EQ(one.last_made(), "c");
}

}  // namespace
}  // namespace cohort::internal
