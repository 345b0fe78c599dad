// What goes on after a missed deadline: the mark before it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "cohort/data/iteration/input_deadline.h"
#include "cohort/data/iteration/pass_interrupted.h"
#include "cohort/data/iteration/testing_deadline.h"
#include "cohort/data/test_util.h"
#include "cohort/data/testing_device.h"

namespace cohort::data {
namespace {

using testing::ElementsAre;

using DeadlineMarks = SlowDeviceTest;

// Far from where it began, several times, and where the state is taken while going back is due.
TEST_F(DeadlineMarks, IsResumedFromTheLastMark) {
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

TEST_F(DeadlineMarks, OfGoingBackLosesNoElement) {
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

// Then the last mark is an older one.
TEST_F(DeadlineMarks, LosesNothingWhereStatesCannotBeSaved) {
  struct Stateless {
    std::optional<int64_t> next() { return at++; }
    std::string save() const { throw UnimplementedError("no state"); }
    void restore(std::string_view) {}
    int64_t at = 0;
  };
  const Dataset dataset =
      Dataset::zip({device_, Dataset::from_generator(Stateless{})}).map([](int64_t x, int64_t y) {
        return 100 * x + y;
      });
  auto iterator = dataset.iterator();
  timeouts_ = 1;
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(iterator.get_next().tensor().item<int64_t>(), 101 * i);
  EXPECT_THROW(iterator.next(), internal::InputDeadlineExceeded);
  EXPECT_THAT(ints(iterator), ElementsAre(606, 707, 808, 909));
}

// It has no mark, and says so instead of beginning anew.
TEST_F(DeadlineMarks, EndsAPipelineThatNeverHadAState) {
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
