// A device that does not answer in time: each call waits once, and no element is lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include "cohort/data/shard.h"
#include "cohort/data/split_batches.h"
#include "cohort/data/test_util.h"
#include "cohort/data/testing_device.h"

namespace cohort::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;
using testing::UnorderedElementsAreArray;

constexpr int kForEver = 1000;

class Deadline : public testing::Test {
 protected:
  // Reads until a timeout; how many there were then.
  int waits(const Dataset& dataset) {
    timeouts_ = kForEver;
    EXPECT_THROW(ints(dataset), DeadlineExceededError);
    return kForEver - timeouts_;
  }
  // What comes in all where one call times out; perhaps another iterator goes on from there.
  std::vector<int64_t> all_after_one(const Dataset& dataset, bool restart = false) {
    timeouts_ = 1;
    auto iterator = dataset.iterator();
    std::vector<int64_t> all;
    for (int errors = 0; errors < 2;) {
      try {
        const auto element = iterator.next();
        if (!element) break;
        append(*element, all);
      } catch (const internal::InputDeadlineExceeded&) {
        ++errors;
        if (!restart) continue;
        const IteratorState state = iterator.state();
        iterator = dataset.iterator();
        iterator.restore(state);
      }
    }
    return all;
  }
  static void append(const Structure& element, std::vector<int64_t>& all) {
    const Tensor flat = element.tensor().contiguous();
    const auto* values = flat.data_ptr<int64_t>();
    all.insert(all.end(), values, values + flat.numel());
  }

  std::atomic<int> timeouts_ = 0;
  // Gives 0 to 9.
  const Dataset device_ = slow_device(10, 6, &timeouts_);
};

TEST_F(Deadline, IsWaitedForOnce) {
  const auto keep = [](int64_t) { return true; };
  const auto same = [](const Tensor& x) { return x; };
  EXPECT_EQ(waits(device_), 1);
  EXPECT_EQ(waits(device_.batch(9)), 1);
  EXPECT_EQ(waits(device_.skip(9)), 1);
  EXPECT_EQ(waits(device_.batch(2).unbatch().skip(9)), 1);
  EXPECT_EQ(waits(in_blocks(device_).filter(keep)), 1);
  EXPECT_EQ(waits(in_blocks(device_).filter(keep).batch(9)), 1);
  EXPECT_EQ(waits(device_.cache().batch(9)), 1);
  EXPECT_EQ(waits(device_.shuffle(3).batch(9)), 1);
  EXPECT_EQ(waits(device_.ignore_errors()), 1);
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
  const auto same = [](const Tensor& x) { return x; };
  const auto keep = [](int64_t) { return true; };
  const auto in_order = ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9);
  const Dataset blocks = in_blocks(device_);
  for (const Dataset& dataset :
       {device_,
        blocks,
        device_.map(same),
        blocks.map([](int64_t x) { return x; }),
        device_.map(same, {.num_parallel_calls = 4}),
        device_.map(same, {.vectorized = true}),
        device_.filter(keep),
        blocks.filter(keep),
        device_.take(10),
        blocks.take(10),
        device_.take_while(keep),
        device_.cache(),
        device_.prefetch(3),
        device_.ignore_errors(),
        device_.assert_cardinality(10),
        blocks.assert_cardinality(10),
        device_.repeat(1),
        device_.batch(4),
        blocks.batch(4),
        blocks.batch(7),
        device_.padded_batch(4),
        device_.batch(4).rebatch(3),
        device_.batch(3).rebatch({1, 6}),
        device_.scan(Structure(0), [](int64_t sum, int64_t x) { return std::pair(sum + x, x); }),
        device_.enumerate().map([](int64_t i, int64_t x) { return 10 * (i - x) + x; }),
        blocks.enumerate().map([](int64_t i, int64_t x) { return 10 * (i - x) + x; }),
        device_.flat_map([](int64_t x) { return Dataset::range(x, x + 1); }),
        Dataset::range(1).flat_map([this](int64_t) { return device_; }),
        Dataset::range(1).interleave([this](const Structure&) { return device_; },
                                     {.block_length = 4, .num_parallel_calls = 2}),
        Dataset::from_generator([iterator = std::make_shared<DatasetIterator>(device_.iterator())] {
          return iterator->next();
        })}) {
    EXPECT_THAT(all_after_one(dataset), in_order) << dataset.explain();
  }
  for (const Dataset& dataset :
       {device_.map(same, {.num_parallel_calls = 4, .deterministic = false}), device_.shuffle(4)}) {
    EXPECT_THAT(all_after_one(dataset), UnorderedElementsAreArray(ints(Dataset::range(10))));
  }
  EXPECT_THAT(all_after_one(device_.take(8)), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

// The same wherever it comes, also before the end.
TEST_F(Deadline, LosesNoElementAtAnyPosition) {
  const auto same = [](const Tensor& x) { return x; };
  const auto number = [](int64_t x) { return x; };
  const auto pair = [](int64_t x, int64_t y) { return 100 * x + y; };
  const auto odd = [](int64_t x) { return x % 2 == 1; };
  using Stage = std::function<Dataset(const Dataset&)>;
  const std::vector<Stage> stages = {
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
      [&](const Dataset& d) { return d.map(same, {.num_parallel_calls = 3}); },
      [&](const Dataset& d) { return d.map(number, {.num_parallel_calls = 3}).batch(4); },
      [&](const Dataset& d) { return d.filter(odd).batch(2); },
      [](const Dataset& d) { return d.skip(4); },
      [](const Dataset& d) { return d.skip(2).batch(3).skip(1); },
      [](const Dataset& d) { return d.take(8).skip(3).repeat(2); },
      [&](const Dataset& d) { return d.map(number).skip(4).enumerate().map(pair); },
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
      [&](const Dataset& d) {
        return Dataset::zip({Dataset::range(9), d}).shard(2, 1).map(pair);
      },
      [&](const Dataset& d) {
        return Dataset::zip({sequential(Dataset::range(9)), d}).skip(3).map(pair);
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
  };
  for (int64_t slow = 0; slow <= 10; ++slow) {
    const Dataset device = slow_device(10, slow, &timeouts_);
    for (size_t i = 0; i < stages.size(); ++i) {
      for (const Dataset& input : {device, in_blocks(device)}) {
        timeouts_ = 0;
        const std::vector<int64_t> expected = ints(stages[i](input));
        for (const bool restart : {false, true}) {
          EXPECT_EQ(all_after_one(stages[i](input), restart), expected)
              << "slow at " << slow << ": " << stages[i](input).explain();
        }
      }
    }
  }
}

// Also one whose shard must be sure that there is an element for each.
TEST_F(Deadline, ShardsThatCountElementsLoseNone) {
  using internal::ShardRequirement;
  for (const auto requirement :
       {ShardRequirement::kElementForEach, ShardRequirement::kFileForEach}) {
    for (int64_t index = 0; index < 3; ++index) {
      for (int64_t slow = 0; slow <= 7; ++slow) {
        const Dataset device = slow_device(7, slow, &timeouts_);
        const Dataset dataset(internal::make_shard(device.node(), 3, index, requirement));
        timeouts_ = 0;
        const std::vector<int64_t> expected = ints(dataset);
        EXPECT_EQ(all_after_one(dataset), expected) << index << " of 3, slow at " << slow;
        timeouts_ = 1;
        auto iterator = dataset.iterator();
        std::vector<int64_t> found;
        while (true) {  // a state in between
          try {
            const auto element = iterator.next();
            if (!element) break;
            append(*element, found);
          } catch (const internal::InputDeadlineExceeded&) {
            auto restored = dataset.iterator();
            restored.restore(IteratorState::parse(iterator.state().serialize()));
            iterator = std::move(restored);
          }
        }
        EXPECT_EQ(found, expected) << index << " of 3, slow at " << slow;
      }
    }
  }
  const Dataset two = slow_device(2, 0, &timeouts_);
  timeouts_ = 1;
  const auto short_of =
      internal::make_shard(two.node(), 3, 1, ShardRequirement::kElementForEach)->make_iterator({});
  Structure element;
  EXPECT_THROW(short_of->next(element), internal::InputDeadlineExceeded);
  EXPECT_THROW(short_of->next(element), InvalidArgumentError);
  EXPECT_THROW(short_of->next(element), InvalidArgumentError);
}

// Every member's element stays with those that the others had for it, also in a state and where
// one of them fails.
TEST_F(Deadline, ZipsStayInStep) {
  const auto fail = [](int64_t x) {
    if (x == 5) throw NotFoundError("no such thing");
    return x;
  };
  const auto read = [&](const Dataset& dataset, bool through_states) {
    auto iterator = dataset.iterator();
    std::vector<std::string> all;
    for (int waits = 0; waits < 2;) {
      try {
        const auto element = iterator.next();
        if (!element) break;
        all.push_back(internal::str(*element));
      } catch (const internal::InputDeadlineExceeded&) {
        ++waits;
        if (!through_states) continue;
        auto restored = dataset.iterator();
        restored.restore(IteratorState::parse(iterator.state().serialize()));
        iterator = std::move(restored);
      } catch (const NotFoundError& error) {
        all.emplace_back(error.what());
      }
    }
    return all;
  };
  const Dataset range = Dataset::range(12);
  for (int64_t slow = 0; slow <= 10; ++slow) {
    const Dataset device = slow_device(10, slow, &timeouts_), blocks = in_blocks(device);
    std::vector<Dataset> datasets = {Dataset::zip({range.map(fail), blocks}),
                                     Dataset::zip({blocks, range.map(fail)}),
                                     Dataset::zip({sequential(range).map(fail), device}),
                                     Dataset::zip({range.map(fail), range, blocks})};
    for (const Dataset& zip :
         {Dataset::zip({range, device}), Dataset::zip({device, range}),
          Dataset::zip({range, blocks}), Dataset::zip({range, range.take(8), blocks}),
          Dataset::zip({range, in_blocks(range.take(8)), blocks, range})}) {
      datasets.insert(datasets.end(), {zip, zip.batch(4), zip.batch(3).prefetch(2)});
    }
    for (const Dataset& dataset : datasets) {
      for (const Dataset& whole : {dataset, dataset.skip(2), dataset.shard(3, 1)}) {
        timeouts_ = 0;
        const std::vector<std::string> expected = read(whole, false);
        for (const bool through_states : {false, true}) {
          timeouts_ = 1;
          EXPECT_EQ(read(whole, through_states), expected)
              << "slow at " << slow << ", states: " << through_states << ": " << whole.explain();
        }
      }
    }
  }
}

// The error of an element is not lost where the device stops answering among those after it.
TEST_F(Deadline, DoesNotHideAnError) {
  const auto fail = [](int64_t x) {
    if (x == 4) throw NotFoundError("no such thing");
    return x;
  };
  const auto passes = [=](int64_t x) { return fail(x) >= 0; };
  const Dataset device = slow_device(10, 5, &timeouts_);
  for (const Dataset& dataset :
       {device.map(fail).batch(3), device.map(fail).padded_batch(3),
        sequential(device).map(fail).batch(3), in_blocks(device).filter(passes).batch(3),
        device.take(8).map(fail).batch(3)}) {
    timeouts_ = 1;
    const auto all = outcomes(*dataset.node()->make_iterator({}));
    EXPECT_THAT(all, testing::Contains(HasSubstr("no such thing"))) << dataset.explain();
  }
  // Nor does a stage below lose count.
  timeouts_ = 1;
  EXPECT_THAT(outcomes(*device.take(8).map(fail).batch(3).node()->make_iterator({})),
              ElementsAre("[0, 1, 2]", HasSubstr("no such thing"), "[6, 7]"));
}

// What fails with an element fails whenever the device answers: counts and pairs stay right.
TEST_F(Deadline, WithAnErrorInOneBlockChangesNothing) {
  const auto fail = [](int64_t x) {
    if (x == 4) throw NotFoundError("no such thing");
    return x;
  };
  const auto passes = [=](int64_t x) { return fail(x) >= 0; };
  const auto pair = [](int64_t x, int64_t y) { return 100 * x + y; };
  const auto twice = [](const Tensor& x) { return 2 * x; };
  const Dataset numbers = sequential(Dataset::range(20));
  using Stage = std::function<Dataset(const Dataset&)>;
  const std::vector<Stage> stages = {
      [&](const Dataset& d) { return d.map(fail).batch(3); },
      [&](const Dataset& d) { return d.map(fail).padded_batch(3); },
      [&](const Dataset& d) { return d.map(fail).batch(3).skip(1); },
      [&](const Dataset& d) {
        return Dataset::zip({Dataset::range(9), d.filter(passes)}).batch(4);
      },
      [&](const Dataset& d) {
        return Dataset::zip({numbers.batch(3), d.map(fail).batch(3)})
            .map([](const Tensor& x, const Tensor& y) { return 100 * x + y; });
      },
      [&](const Dataset& d) { return d.filter(passes).enumerate().map(pair).batch(4); },
      [&](const Dataset& d) { return d.filter(passes).take(8).batch(3); },
      [&](const Dataset& d) { return d.map(fail).map(twice, {.vectorized = true}).batch(3); },
      [&](const Dataset& d) {
        return d.map(fail).map(twice, {.num_parallel_calls = 1, .vectorized = true}).batch(3);
      },
      [&](const Dataset& d) {
        return Dataset::zip({numbers, d.map(fail)}).map(pair).batch(3);
      },
  };
  for (int64_t slow = 0; slow <= 10; ++slow) {
    const Dataset device = slow_device(10, slow, &timeouts_);
    for (const Stage& stage : stages) {
      for (const Dataset& input : {device, in_blocks(device)}) {
        const auto read = [&](int timeouts) {
          timeouts_ = timeouts;
          std::vector<std::string> all = outcomes(*stage(input).node()->make_iterator({}));
          std::erase_if(all, [](const std::string& one) {
            return one.find("does not answer") != std::string::npos;
          });
          return all;
        };
        const std::vector<std::string> expected = read(0);
        EXPECT_THAT(expected, testing::Contains(HasSubstr("no such thing")));
        EXPECT_EQ(read(1), expected) << "slow at " << slow << ": " << stage(input).explain();
      }
    }
  }
}

// Gives what its input gives; a block with element `failing` fails, and going back misses a
// deadline, after which the input is good for nothing but another restore.
class SlowToRestore final : public internal::DataNode {
 public:
  SlowToRestore(internal::DataNodePtr input, std::atomic<int>* timeouts)
      : DataNode("slow_to_restore", {std::move(input)}), timeouts_(timeouts) {}
  internal::DataNodePtr with_inputs(std::vector<internal::DataNodePtr> inputs) const override {
    return std::make_shared<SlowToRestore>(std::move(inputs[0]), timeouts_);
  }
  StructureSpec element_spec() const override { return inputs()[0]->element_spec(); }
  int64_t cardinality() const override { return inputs()[0]->cardinality(); }
  std::unique_ptr<internal::DataIterator> make_iterator(
      const internal::IteratorContext& context) const override {
    return std::make_unique<Iterator>(inputs()[0]->make_iterator(context), timeouts_);
  }

 private:
  class Iterator final : public internal::DataIterator {
   public:
    Iterator(std::unique_ptr<internal::DataIterator> input, std::atomic<int>* timeouts)
        : input_(std::move(input)), timeouts_(timeouts) {}
    bool next(Structure& out) override { return input_->next(out); }
    bool has_blocks() const override { return true; }
    int64_t next_block(int64_t n, Structure& out) override { return input_->next_block(n, out); }
    void rewind(uint64_t epoch) override { input_->rewind(epoch); }
    IteratorState save() const override { return input_->save(); }
    void restore(const IteratorState& state) override {
      input_->restore(state);
      if (*timeouts_ == 0) return;
      --*timeouts_;
      input_->skip(1000);
      throw internal::InputDeadlineExceeded("the device does not answer");
    }

   private:
    std::unique_ptr<internal::DataIterator> input_;
    std::atomic<int>* timeouts_;
  };
  std::atomic<int>* timeouts_;
};

TEST_F(Deadline, OfGoingBackLosesNoElement) {
  const auto fail = [](int64_t x) {
    if (x == 4) throw NotFoundError("no such thing");
    return x;
  };
  const auto keep = [](int64_t x) { return x != 2; };
  const Dataset slow(
      std::make_shared<SlowToRestore>(in_blocks(Dataset::range(8)).map(fail).node(), &timeouts_));
  const Dataset dataset = slow.filter(keep);
  const auto rest = ElementsAre("3", HasSubstr("no such thing"), "5", "6", "7");
  for (const bool through_state : {false, true}) {
    timeouts_ = 2;
    auto iterator = dataset.node()->make_iterator({});
    Structure element;
    ASSERT_TRUE(iterator->next(element));
    ASSERT_TRUE(iterator->next(element));
    EXPECT_THROW(iterator->next(element), internal::InputDeadlineExceeded);
    EXPECT_THROW(iterator->next(element), internal::InputDeadlineExceeded);
    if (through_state) {
      const IteratorState state = iterator->save();
      iterator = dataset.node()->make_iterator({});
      iterator->restore(state);
    }
    EXPECT_THAT(outcomes(*iterator), rest);
  }
}

// A cache misses nothing where an element came late.
TEST_F(Deadline, LeavesTheCacheWhole) {
  int64_t calls = 0;
  const auto count = [&](int64_t x) {
    ++calls;
    return x;
  };
  for (const Dataset& dataset :
       {device_.map(count).cache(), in_blocks(device_).map(count).cache()}) {
    calls = 0;
    EXPECT_EQ(all_after_one(dataset), ints(Dataset::range(10)));
    EXPECT_EQ(ints(dataset), ints(Dataset::range(10)));
    EXPECT_EQ(calls, 10) << dataset.explain();
  }
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
        device_.flat_map([=](int64_t x) { return Dataset::range(fail(x)); }),
        Dataset::from_generator([=, iterator = std::make_shared<DatasetIterator>(
                                        device_.iterator())]() -> std::optional<Structure> {
          const Structure element = iterator->get_next();
          fail(element.tensor().item<int64_t>());
          return element;
        })}) {
    timeouts_ = 1;
    auto iterator = dataset.iterator();
    EXPECT_THROW(texts(iterator), internal::InputDeadlineExceeded);
    EXPECT_THAT(error_text<NotFoundError>([&] { texts(iterator); }), HasSubstr("element 8"))
        << dataset.explain();
  }
}

// A batch that waits for a device keeps what it has, also in a state.
TEST_F(Deadline, BatchesGoOnWhereTheyStopped) {
  for (const Dataset& dataset : {device_.batch(4), in_blocks(device_).batch(8).skip(0),
                                 device_.padded_batch(4), device_.batch(5).rebatch(8)}) {
    timeouts_ = 0;
    const std::vector<std::string> all = texts(dataset);
    timeouts_ = 1;
    auto iterator = dataset.iterator();
    std::vector<std::string> found;
    try {
      while (auto element = iterator.next()) found.push_back(internal::str(*element));
      FAIL() << "no deadline was missed";
    } catch (const internal::InputDeadlineExceeded&) {
    }
    auto restored = dataset.iterator();
    restored.restore(IteratorState::parse(iterator.state().serialize()));
    const std::vector<std::string> rest(all.begin() + std::ssize(found), all.end());
    EXPECT_EQ(texts(restored), rest) << dataset.explain();
    EXPECT_EQ(texts(iterator), rest) << dataset.explain();
  }
  const auto iterator = device_.batch(4).node()->make_iterator({});
  timeouts_ = 1;
  EXPECT_EQ(iterator->skip(1), 1);
  Structure element;
  EXPECT_THROW(iterator->next(element), internal::InputDeadlineExceeded);
  EXPECT_EQ(iterator->skip(1), 1);
  EXPECT_THAT(outcomes(*iterator), ElementsAre("[8, 9]"));
}

TEST_F(Deadline, StatesWithTooManyPendingElementsAreRefused) {
  const auto pending_state = [&](const Dataset& dataset) {
    timeouts_ = 1;
    const auto iterator = dataset.node()->make_iterator({});
    Structure element;
    EXPECT_THROW(iterator->next(element), internal::InputDeadlineExceeded);
    return iterator->save();
  };
  const auto restore = [](const Dataset& dataset, const IteratorState& state) {
    dataset.node()->make_iterator({})->restore(state);
  };
  const Dataset blocks = in_blocks(device_);
  EXPECT_THROW(restore(device_.batch(6), pending_state(device_.batch(7))), DataLossError);
  EXPECT_THROW(restore(blocks.batch(6), pending_state(blocks.batch(7))), DataLossError);
  EXPECT_THROW(restore(device_.padded_batch(6), pending_state(device_.padded_batch(7))),
               DataLossError);
  EXPECT_THROW(restore(device_.batch(2).rebatch(6), pending_state(device_.batch(2).rebatch(7))),
               DataLossError);
  EXPECT_NO_THROW(restore(device_.batch(8), pending_state(device_.batch(7))));
}

// It was not the device that did not answer: the element is consumed, as by any other error.
TEST(DeadlineOfAFunction, IsAnErrorOfItsElement) {
  const auto fail = [](int64_t x) {
    if (x == 4) throw DeadlineExceededError("no answer");
    return x;
  };
  const auto passes = [=](int64_t x) { return fail(x) < 100; };
  const Dataset range = Dataset::range(8), blocks = in_blocks(range), single = sequential(range);
  const auto rest = ElementsAre("0", "1", "2", "3", HasSubstr("no answer"), "5", "6", "7");
  for (const Dataset& dataset :
       {range.map(fail), blocks.map(fail), single.map(fail), single.map(fail).take(8),
        single.map(fail).cache(), single.map(fail).prefetch(2), blocks.map(fail).filter(passes),
        single.map(fail, {.num_parallel_calls = 3}), range.filter(passes), blocks.filter(passes),
        single.filter(passes), single.take_while(passes), single.map(fail).take_while(passes),
        single.scan(Structure(0), [=](int64_t sum, int64_t x) { return std::pair(sum, fail(x)); }),
        single.flat_map([=](int64_t x) { return Dataset::range(fail(x), x + 1); }),
        Dataset::range(1).flat_map([=](int64_t) { return single.map(fail); }),
        Dataset::range(1).interleave([=](int64_t) { return single.map(fail); },
                                     {.block_length = 3, .num_parallel_calls = 2}),
        Dataset::from_generator([=, i = int64_t{0}]() mutable -> std::optional<int64_t> {
          return i < 8 ? std::optional(fail(i++)) : std::nullopt;
        })}) {
    EXPECT_THAT(outcomes(*dataset.node()->make_iterator({})), rest) << dataset.explain();
    const auto skipped = dataset.skip(6).node()->make_iterator({});
    EXPECT_THAT(outcomes(*skipped), ElementsAre("6", "7")) << dataset.explain();
    EXPECT_THAT(outcomes(*dataset.batch(3).node()->make_iterator({})),
                ElementsAre("[0, 1, 2]", HasSubstr("no answer"), "[6, 7]"))
        << dataset.explain();
    EXPECT_THAT(ints(dataset.ignore_errors()), ElementsAre(0, 1, 2, 3, 5, 6, 7));
    EXPECT_THAT(outcomes(*dataset.shuffle(3).ignore_errors().node()->make_iterator({})),
                UnorderedElementsAre("0", "1", "2", "3", "5", "6", "7"));
  }
}

// The next element fails with a DeadlineExceededError, and does not come again.
void expect_consuming_deadline(DatasetIterator& iterator) {
  try {
    iterator.next();
    FAIL() << "no deadline was missed";
  } catch (const internal::InputDeadlineExceeded& error) {
    FAIL() << "the element would come again: " << error.what();
  } catch (const DeadlineExceededError&) {
  }
}

// Nor that of this pipeline, where a function reads another one.
TEST(DeadlineOfAFunction, IsNotThatOfAPipelineWithin) {
  std::atomic<int> timeouts = 1;
  const Dataset within = slow_device(1, 0, &timeouts);
  const Dataset dataset = Dataset::range(3).map(
      [&](int64_t x) { return x + within.iterator().get_next().tensor().item<int64_t>(); });
  auto iterator = dataset.iterator();
  expect_consuming_deadline(iterator);
  EXPECT_THAT(ints(iterator), ElementsAre(1, 2));
}

// A coroutine that has thrown is over.
TEST(DeadlineOfAFunction, EndsACoroutine) {
  std::atomic<int> timeouts = 1;
  const Dataset within = slow_device(6, 3, &timeouts);
  const Dataset dataset = Dataset::from_generator([within]() -> Generator<int64_t> {
                            for (const Structure& element : within) {
                              co_yield element.tensor().item<int64_t>();
                            }
                          }).cache();
  auto iterator = dataset.iterator();
  for (int i = 0; i < 3; ++i) iterator.next();
  expect_consuming_deadline(iterator);
  EXPECT_FALSE(iterator.next());
  EXPECT_THAT(ints(dataset), ElementsAre(0, 1, 2, 3, 4, 5)) << "half a pass was cached";
}

// A prefetch does not read on while the device is away: one error for one timeout.
TEST_F(Deadline, IsReportedOnceByPrefetch) {
  const Dataset dataset = slow_device(8, 3, &timeouts_).prefetch(4);
  timeouts_ = kForEver;
  auto iterator = dataset.iterator();
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(iterator.get_next().tensor().item<int64_t>(), i);
  EXPECT_THROW(iterator.next(), DeadlineExceededError);
  while (timeouts_ > kForEver - 2) std::this_thread::yield();  // it has tried again
  timeouts_ = 0;
  EXPECT_THROW(iterator.next(), DeadlineExceededError);
  EXPECT_EQ(iterator.get_next().tensor().item<int64_t>(), 3);
}

// Nor while a restore calls it again: the state stays good.
TEST(DeadlineOfAFunction, DoesNotSpoilTheRestoreOfACoroutine) {
  std::atomic<int> timeouts = 0;
  const Dataset within = slow_device(6, 2, &timeouts);
  const Dataset dataset = Dataset::from_generator([within]() -> Generator<int64_t> {
    for (const Structure& element : within) co_yield element.tensor().item<int64_t>();
  });
  auto iterator = dataset.iterator();
  for (int i = 0; i < 3; ++i) iterator.next();
  const IteratorState state = iterator.state();
  timeouts = 1;
  auto restored = dataset.iterator();
  EXPECT_THROW(restored.restore(state), DeadlineExceededError);
  restored.restore(state);
  EXPECT_THAT(ints(restored), ElementsAre(3, 4, 5));
}

// Positions that count elements do not count timeouts.
TEST_F(Deadline, StatesStayRight) {
  const auto draw = [](random::RandomGenerator& random, int64_t x) {
    return Structure(static_cast<int64_t>(random.next_u64() % 1000) * 100 + x);
  };
  for (const Dataset& dataset : {device_.cache(), device_.shuffle(3, {.seed = 1}),
                                 device_.map(draw, {.num_parallel_calls = 1, .seed = 1}),
                                 device_.map(draw, {.num_parallel_calls = 3, .seed = 1})}) {
    timeouts_ = 0;
    const std::vector<int64_t> expected = ints(dataset.take(9));
    timeouts_ = 1;
    auto iterator = dataset.iterator();
    std::vector<int64_t> found;
    while (found.size() < 7) {
      try {
        found.push_back(iterator.get_next().tensor().item<int64_t>());
      } catch (const DeadlineExceededError&) {
      }
    }
    auto restored = dataset.iterator();
    restored.restore(iterator.state());
    while (found.size() < 9) found.push_back(restored.get_next().tensor().item<int64_t>());
    EXPECT_EQ(found, expected) << dataset.explain();
  }
}

}  // namespace
}  // namespace cohort::data
