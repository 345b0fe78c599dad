// A device that does not answer in time: each call waits once, and no element is lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>

#include "cohort/data/iteration/input_deadline.h"
#include "cohort/data/iteration/pass_interrupted.h"
#include "cohort/data/sharding/shard.h"
#include "cohort/data/split_batches.h"
#include "cohort/data/test_util.h"
#include "cohort/data/testing_device.h"

namespace cohort::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAreArray;
using Stage = std::function<Dataset(const Dataset&)>;

constexpr int kForEver = 1000;

// What the calls of next() come to, but for missed deadlines, after which perhaps another iterator
// goes on.
enum class After { kNextCall, kRestart };
std::vector<std::string> outcomes_across(const Dataset& dataset, After after) {
  auto iterator = dataset.iterator();
  std::vector<std::string> all;
  for (int missed = 0; missed < 10;) {
    try {
      const auto element = iterator.next();
      if (!element) break;
      all.push_back(internal::str(*element));
    } catch (const internal::InputDeadlineExceeded&) {
      ++missed;
      if (after == After::kNextCall) continue;
      const std::string state = iterator.state().serialize();
      iterator = dataset.iterator();
      iterator.restore(IteratorState::parse(state));
    } catch (const Error& error) {
      all.emplace_back(error.what());
    }
  }
  return all;
}

int64_t same(int64_t x) { return x; }
int64_t joined(int64_t x, int64_t y) { return 100 * x + y; }
bool is_odd(int64_t x) { return x % 2 == 1; }
Tensor twice_each(const Tensor& x) { return 2 * x; }
int64_t fail_at_four(int64_t x) {
  if (x == 4) throw NotFoundError("no such thing");
  return x;
}
bool passes(int64_t x) { return fail_at_four(x) >= 0; }

class Deadline : public testing::Test {
 protected:
  // Reads until a timeout; how many there were then.
  int waits(const Dataset& dataset) {
    timeouts_ = kForEver;
    EXPECT_THROW(ints(dataset), DeadlineExceededError);
    return kForEver - timeouts_;
  }
  // Wherever the device misses a deadline, the same comes of each stage.
  void expect_nothing_lost(const std::vector<Stage>& stages) {
    for (int64_t slow = 0; slow <= 10; ++slow) {
      const Dataset device = slow_device(10, slow, &timeouts_);
      for (const Stage& stage : stages) {
        for (const Dataset& input : {device, in_blocks(device)}) {
          timeouts_ = 0;
          const Dataset dataset = stage(input);
          const std::vector<std::string> expected = outcomes_across(dataset, After::kNextCall);
          for (const After after : {After::kNextCall, After::kRestart}) {
            timeouts_ = 1;
            EXPECT_EQ(outcomes_across(stage(input), after), expected)
                << "slow at " << slow << ", restart: " << (after == After::kRestart) << ": "
                << dataset.explain();
          }
        }
      }
    }
  }

  std::atomic<int> timeouts_ = 0;
  // Gives 0 to 9.
  const Dataset device_ = slow_device(10, 6, &timeouts_);
};

TEST_F(Deadline, IsWaitedForOnce) {
  const auto keep = [](int64_t) { return true; };
  EXPECT_EQ(waits(device_), 1);
  EXPECT_EQ(waits(device_.batch(9)), 1);
  EXPECT_EQ(waits(device_.skip(9)), 1);
  EXPECT_EQ(waits(device_.batch(2).unbatch().skip(9)), 1);
  EXPECT_EQ(waits(in_blocks(device_).filter(keep)), 1);
  EXPECT_EQ(waits(in_blocks(device_).filter(keep).batch(9)), 1);
  EXPECT_EQ(waits(device_.map(fail_at_four).batch(9)), 1);
  EXPECT_EQ(waits(device_.cache().batch(9)), 1);
  EXPECT_EQ(waits(device_.shuffle(3).batch(9)), 1);
  EXPECT_EQ(waits(device_.ignore_errors()), 1);
  EXPECT_EQ(waits(device_.prefetch(4)), 1);
  for (bool deterministic : {true, false}) {
    EXPECT_EQ(waits(device_.map(same, {.num_parallel_calls = 4, .deterministic = deterministic})),
              1);
  }
  EXPECT_EQ(waits(Dataset::range(1).interleave(
                [this](const Structure&) { return device_; },
                {.cycle_length = 1, .block_length = 9, .num_parallel_calls = 1})),
            1);
}

TEST_F(Deadline, LosesNoElement) {
  expect_nothing_lost({
      [](const Dataset& d) { return d; },
      [](const Dataset& d) { return d.map(twice_each, {.vectorized = true}); },
      [](const Dataset& d) { return d.take_while([](int64_t x) { return x < 8; }); },
      [](const Dataset& d) { return d.cache(); },
      [](const Dataset& d) { return d.assert_cardinality(10); },
      [](const Dataset& d) {
        return d.scan(Structure(0), [](int64_t sum, int64_t x) { return std::pair(sum + x, sum); });
      },
      [](const Dataset& d) { return d.repeat(2); },
      [](const Dataset& d) { return d.cache().repeat(2); },
      [](const Dataset& d) { return d.concatenate(Dataset::range(3)); },
      [](const Dataset& d) { return Dataset::range(3).concatenate(d); },
      [](const Dataset& d) { return d.concatenate(d); },
      [](const Dataset& d) { return d.batch(4); },
      [](const Dataset& d) { return d.batch(4, {.drop_remainder = true}); },
      [](const Dataset& d) { return d.padded_batch(3); },
      [](const Dataset& d) { return d.batch(4).unbatch(); },
      [](const Dataset& d) {
        return d.batch(4).rebatch({1, 2, 0});
      },
      [](const Dataset& d) { return d.batch(3).rebatch(4).unbatch().batch(6); },
      [](const Dataset& d) { return d.prefetch(1); },
      [](const Dataset& d) { return d.prefetch(4).batch(3).prefetch(AUTOTUNE); },
      [](const Dataset& d) { return d.shuffle(4, {.seed = 1}); },
      [](const Dataset& d) { return d.shuffle(20, {.seed = 1}).repeat(2); },
      [](const Dataset& d) { return d.map(twice_each, {.num_parallel_calls = 3}); },
      [](const Dataset& d) { return d.map(twice_each, {.num_parallel_calls = 3}).batch(4); },
      [](const Dataset& d) { return d.filter(is_odd).batch(2); },
      [](const Dataset& d) { return d.skip(4); },
      [](const Dataset& d) { return d.skip(2).batch(3).skip(1); },
      [](const Dataset& d) { return d.take(8).skip(3).repeat(2); },
      [](const Dataset& d) { return d.map(same).skip(4).enumerate().map(joined); },
      [](const Dataset& d) { return d.ignore_errors(); },
      [](const Dataset& d) { return d.shard(2, 0); },
      [](const Dataset& d) { return d.shard(3, 1); },
      [](const Dataset& d) { return d.shard(4, 3).repeat(2); },
      [](const Dataset& d) { return d.shard(2, 1).shard(2, 1); },
      [](const Dataset& d) { return d.batch(3).shard(2, 0); },
      [](const Dataset& d) { return d.batch(2).shard(2, 1); },
      [](const Dataset& d) { return d.padded_batch(2).shard(2, 1); },
      [](const Dataset& d) { return d.batch(4).rebatch(2).shard(2, 1); },
      [](const Dataset& d) { return split_batches(d.batch(4), 2); },
      [](const Dataset& d) { return split_batches(d.batch(4), 2).shard(2, 1); },
      [](const Dataset& d) { return split_batches(d.batch(3), 3).shard(3, 0); },
      [](const Dataset& d) { return split_batches(d.batch(4), 2).skip(1); },
      [](const Dataset& d) { return d.shard(2, 1).batch(3); },
      [](const Dataset& d) {
        return Dataset::zip({Dataset::range(9), d}).shard(2, 1).map(joined);
      },
      [](const Dataset& d) {
        return Dataset::zip({sequential(Dataset::range(9)), d}).skip(3).map(joined);
      },
      [](const Dataset& d) { return d.flat_map([](int64_t x) { return Dataset::range(x); }); },
      [](const Dataset& d) {
        return d.interleave([](int64_t x) { return Dataset::range(x, x + 3); },
                            {.cycle_length = 2, .block_length = 2});
      },
      [](const Dataset& d) {
        return d.interleave([](int64_t x) { return Dataset::range(x, x + 3); },
                            {.cycle_length = 3, .num_parallel_calls = 2});
      },
      [](const Dataset& d) {
        return Dataset::range(3).interleave([d](int64_t) { return d; },
                                            {.cycle_length = 2, .block_length = 2});
      },
      [](const Dataset& d) {
        return Dataset::range(3).interleave(
            [d](int64_t) { return d; },
            {.cycle_length = 3, .block_length = 2, .num_parallel_calls = 1});
      },
  });
}

// What fails with an element fails whenever the device answers: counts and pairs stay right.
TEST_F(Deadline, ChangesNoError) {
  const auto numbers = [] { return sequential(Dataset::range(20)); };
  expect_nothing_lost({
      [](const Dataset& d) { return d.map(fail_at_four).batch(3); },
      [](const Dataset& d) { return d.map(fail_at_four).padded_batch(3); },
      [](const Dataset& d) { return d.map(fail_at_four).batch(3).skip(1); },
      [](const Dataset& d) { return d.map(fail_at_four, {.num_parallel_calls = 3}).batch(3); },
      [](const Dataset& d) { return d.map(fail_at_four).batch(3).prefetch(2); },
      [](const Dataset& d) { return d.map(fail_at_four).shuffle(3, {.seed = 1}); },
      [](const Dataset& d) {
        return Dataset::zip({Dataset::range(9), d.filter(passes)}).batch(4);
      },
      [=](const Dataset& d) {
        return Dataset::zip({numbers().batch(3), d.map(fail_at_four).batch(3)});
      },
      [=](const Dataset& d) {
        return Dataset::zip({numbers(), d.map(fail_at_four)}).map(joined).batch(3);
      },
      [=](const Dataset& d) {
        return Dataset::zip({numbers().map(fail_at_four), d}).shard(3, 1);
      },
      [](const Dataset& d) { return d.filter(passes).enumerate().map(joined).batch(4); },
      [](const Dataset& d) { return d.filter(passes).take(8).batch(3); },
      [](const Dataset& d) {
        return d.map(fail_at_four).map(twice_each, {.vectorized = true}).batch(3);
      },
      [](const Dataset& d) {
        return d.map(fail_at_four)
            .map(twice_each, {.num_parallel_calls = 1, .vectorized = true})
            .batch(3);
      },
      [](const Dataset& d) {
        return d.flat_map([](int64_t x) { return Dataset::range(fail_at_four(x), x + 2); });
      },
  });
}

// Also one whose shard must be sure that there is an element for each.
TEST_F(Deadline, ShardsThatCountElementsLoseNone) {
  using internal::ShardRequirement;
  std::vector<Stage> stages;
  for (const auto requirement :
       {ShardRequirement::kElementForEach, ShardRequirement::kFileForEach}) {
    for (int64_t index = 0; index < 3; ++index) {
      stages.push_back([=](const Dataset& d) {
        return Dataset(internal::make_shard(d.node(), 3, index, requirement));
      });
      stages.push_back([=](const Dataset& d) {
        return Dataset(internal::make_shard(d.take(2).node(), 3, index, requirement));
      });
    }
  }
  expect_nothing_lost(stages);
}

// What another iterator would give in another order: each element comes once all the same.
TEST_F(Deadline, LosesNoElementWhereOrderIsNotKept) {
  const auto expected = UnorderedElementsAreArray(texts(Dataset::range(10)));
  const std::vector<Stage> stages = {
      [](const Dataset& d) {
        return d.map(same, {.num_parallel_calls = 4, .deterministic = false});
      },
      [](const Dataset& d) {
        return d.batch(1).unbatch().map(same, {.num_parallel_calls = 2, .deterministic = false});
      },
      [](const Dataset& d) {
        return Dataset::range(1).flat_map([d](int64_t) {
          return d.map(same, {.num_parallel_calls = 3, .deterministic = false});
        });
      },
      [](const Dataset& d) {
        return d.interleave([](int64_t x) { return Dataset::range(x, x + 1); },
                            {.cycle_length = 3, .num_parallel_calls = 3, .deterministic = false});
      },
  };
  for (int64_t slow = 0; slow <= 10; ++slow) {
    for (const Stage& stage : stages) {
      for (const After after : {After::kNextCall, After::kRestart}) {
        timeouts_ = 2;
        EXPECT_THAT(outcomes_across(stage(slow_device(10, slow, &timeouts_)), after), expected)
            << slow;
      }
    }
  }
}

// Far from where it began, several times, and where the state is taken while going back is due.
TEST_F(Deadline, IsResumedFromTheLastMark) {
  std::atomic<int> reads = 0;
  for (const int64_t slow : {255, 256, 257, 700, 1999}) {
    const Dataset dataset = slow_device(2000, slow, &timeouts_).filter([&](const Structure&) {
      ++reads;
      return true;
    });
    for (const After after : {After::kNextCall, After::kRestart}) {
      timeouts_ = 3;
      reads = 0;
      EXPECT_EQ(outcomes_across(dataset, after), texts(Dataset::range(2000))) << slow;
      EXPECT_LE(reads, 2000 + 3 * 256) << slow;
    }
  }
}

// Going back takes its time on a device that is still away.
class SlowToRestore final : public internal::UnaryNode {
 public:
  SlowToRestore(internal::DataNodePtr input, std::atomic<int>* timeouts)
      : UnaryNode("slow_to_restore", std::move(input)), timeouts_(timeouts) {}
  internal::DataNodePtr with_inputs(std::vector<internal::DataNodePtr> inputs) const override {
    return std::make_shared<SlowToRestore>(std::move(inputs[0]), timeouts_);
  }
  int64_t cardinality() const override { return input().cardinality(); }
  std::unique_ptr<internal::DataIterator> make_iterator(
      const internal::IteratorContext& context) const override {
    return std::make_unique<Iterator>(input().make_iterator(context), timeouts_);
  }

 private:
  class Iterator final : public internal::DataIterator {
   public:
    Iterator(std::unique_ptr<internal::DataIterator> input, std::atomic<int>* timeouts)
        : input_(std::move(input)), timeouts_(timeouts) {}
    bool next(Structure& out) override { return input_->next(out); }
    void rewind(uint64_t epoch) override { input_->rewind(epoch); }
    IteratorState save() override { return input_->save(); }
    void restore(const IteratorState& state) override {
      input_->restore(state);
      if ((*timeouts_)-- > 0) internal::interrupt_pass(DeadlineExceededError("still away"));
    }

   private:
    std::unique_ptr<internal::DataIterator> input_;
    std::atomic<int>* timeouts_;
  };
  std::atomic<int>* timeouts_;
};

TEST_F(Deadline, OfGoingBackLosesNoElement) {
  std::atomic<int> of_restore = 2;
  const Dataset dataset(std::make_shared<SlowToRestore>(device_.node(), &of_restore));
  timeouts_ = 1;
  auto iterator = dataset.batch(4).iterator();
  EXPECT_EQ(internal::str(iterator.get_next()), "[0, 1, 2, 3]");
  for (int i = 0; i < 3; ++i) EXPECT_THROW(iterator.next(), internal::InputDeadlineExceeded);
  const IteratorState state = iterator.state();
  EXPECT_THAT(texts(iterator), ElementsAre("[4, 5, 6, 7]", "[8, 9]"));
  of_restore = 1;
  EXPECT_THROW(iterator.restore(state), internal::InputDeadlineExceeded);
  EXPECT_FALSE(iterator.next()) << "a restore that fails moves nothing";
  iterator.restore(state);
  EXPECT_THAT(texts(iterator), ElementsAre("[4, 5, 6, 7]", "[8, 9]"));
}

// What is said to have failed is what did.
TEST_F(Deadline, MessagesCountElements) {
  const auto fail = [](int64_t x) {
    if (x == 8) throw NotFoundError("no such thing");
    return true;
  };
  const auto fail_next = [=](int64_t sum, int64_t x) { return std::pair(sum, fail(x)); };
  for (const Dataset& dataset :
       {device_.map(fail), in_blocks(device_).map(fail),
        device_.map(fail, {.num_parallel_calls = 3}), device_.filter(fail),
        in_blocks(device_).filter(fail), device_.take_while(fail),
        device_.scan(Structure(0), fail_next),
        device_.flat_map([=](int64_t x) { return Dataset::range(fail(x)); })}) {
    timeouts_ = 1;
    auto iterator = dataset.iterator();
    EXPECT_THROW(texts(iterator), internal::InputDeadlineExceeded);
    EXPECT_THAT(error_text<NotFoundError>([&] { texts(iterator); }), HasSubstr("element 8"))
        << dataset.explain();
  }
}

// A prefetch reads on only after the next call.
TEST_F(Deadline, IsReportedOnceByPrefetch) {
  timeouts_ = 2;
  auto iterator = device_.prefetch(4).iterator();
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(iterator.get_next().tensor().item<int64_t>(), i);
  for (int i = 0; i < 2; ++i) EXPECT_THROW(iterator.next(), DeadlineExceededError);
  EXPECT_EQ(iterator.get_next().tensor().item<int64_t>(), 6);
}

// Then the last mark is an older one.
TEST_F(Deadline, LosesNothingWhereStatesCannotBeSaved) {
  struct Stateless {
    std::optional<int64_t> next() { return at++; }
    std::string save() const { throw UnimplementedError("no state"); }
    void restore(std::string_view) {}
    int64_t at = 0;
  };
  const Dataset dataset = Dataset::zip({device_, Dataset::from_generator(Stateless{})}).map(joined);
  auto iterator = dataset.iterator();
  timeouts_ = 1;
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(iterator.get_next().tensor().item<int64_t>(), 101 * i);
  EXPECT_THROW(iterator.next(), internal::InputDeadlineExceeded);
  EXPECT_THAT(ints(iterator), ElementsAre(606, 707, 808, 909));
}

// It has no mark, and says so instead of beginning anew.
TEST_F(Deadline, EndsAPipelineThatNeverHadAState) {
  struct Stateless final : internal::DataIterator {
    bool next(Structure&) override { internal::interrupt_pass(DeadlineExceededError("no answer")); }
    void rewind(uint64_t) override {}
    IteratorState save() override { throw UnimplementedError("no state"); }
    void restore(const IteratorState&) override {}
  };
  struct Node final : internal::DataNode {
    Node() : DataNode("stateless", {}) {}
    internal::DataNodePtr with_inputs(std::vector<internal::DataNodePtr>) const override {
      return std::make_shared<Node>();
    }
    StructureSpec element_spec() const override {
      return TensorSpec(std::vector<int64_t>{}, int64);
    }
    int64_t cardinality() const override { return kUnknownCardinality; }
    std::unique_ptr<internal::DataIterator> make_iterator(
        const internal::IteratorContext&) const override {
      return std::make_unique<Stateless>();
    }
  };
  auto iterator = Dataset(std::make_shared<Node>()).iterator();
  EXPECT_THROW(iterator.next(), internal::InputDeadlineExceeded);
  EXPECT_THROW(iterator.next(), FailedPreconditionError);
  EXPECT_THROW(iterator.state(), FailedPreconditionError);
}

}  // namespace
}  // namespace cohort::data
