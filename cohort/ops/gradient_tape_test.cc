#include "cohort/ops/gradient_tape.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <thread>

#include "cohort/core/error.h"
#include "cohort/ops/recording_scope.h"

namespace cohort {
namespace {

// A tensor that tapes record, as a variable's leaf is.
Tensor leaf(double value) { return at::full({}, value, at::kDouble).set_requires_grad(true); }
double number(const Tensor& tensor) { return tensor.item<double>(); }

class GradientTapeTest : public ::testing::Test {
 protected:
  GradientTapeTest() { at::GradMode::set_enabled(false); }  // as in a step
  ~GradientTapeTest() override { at::GradMode::set_enabled(true); }
};

TEST_F(GradientTapeTest, TakesSourcesInBraces) {
  const Tensor x = leaf(3), y = leaf(2);
  GradientTape tape;
  const std::vector<Tensor> gradients = tape.gradient(x * x * y, {x, y});
  EXPECT_EQ(number(gradients[0]), 12);
  EXPECT_EQ(number(gradients[1]), 9);
}

TEST_F(GradientTapeTest, GivesTheGradientOfEachSource) {
  const Tensor x = leaf(3), y = leaf(4);
  GradientTape tape;
  const auto gradients = tape.gradient(x * x * y, std::vector<Tensor>{x, y});
  EXPECT_EQ(number(gradients[0]), 24);
  EXPECT_EQ(number(gradients[1]), 9);
}

TEST_F(GradientTapeTest, RecordsOnlyWhileItLives) {
  const Tensor x = leaf(3);
  EXPECT_FALSE((x * x).requires_grad());
  {
    GradientTape tape;
    EXPECT_TRUE((x * x).requires_grad());
  }
  EXPECT_FALSE((x * x).requires_grad());
}

TEST_F(GradientTapeTest, StopsRecordingWhenTheGradientIsTaken) {
  const Tensor x = leaf(3);
  GradientTape tape;
  tape.gradient(x * x, x);
  EXPECT_FALSE((x * x).requires_grad());
}

TEST_F(GradientTapeTest, OfAVectorIsOfItsSum) {
  const Tensor x = at::ones({3}, at::kDouble).set_requires_grad(true);
  GradientTape tape;
  EXPECT_TRUE(at::equal(tape.gradient(2 * x, x), at::full({3}, 2.0, at::kDouble)));
}

TEST_F(GradientTapeTest, OutputGradientsWeighTheTarget) {
  const Tensor x = at::ones({2}, at::kDouble).set_requires_grad(true);
  GradientTape tape;
  const Tensor weights = at::full({2}, 5.0, at::kDouble);
  EXPECT_TRUE(at::equal(tape.gradient(2 * x, x, {.output_gradients = weights}),
                        at::full({2}, 10.0, at::kDouble)));
}

TEST_F(GradientTapeTest, OutputGradientsOfAnotherShapeAreRefused) {
  const Tensor x = leaf(1);
  GradientTape tape;
  EXPECT_THROW(tape.gradient(2 * x, x, {.output_gradients = at::ones({2})}), InvalidArgumentError);
}

TEST_F(GradientTapeTest, ASecondGradientNeedsAPersistentTape) {
  const Tensor x = leaf(3);
  GradientTape once;
  const Tensor y = x * x;
  once.gradient(y, x);
  EXPECT_THROW(once.gradient(y, x), FailedPreconditionError);

  GradientTape tape({.persistent = true});
  const Tensor z = x * x * x;
  EXPECT_EQ(number(tape.gradient(z, x)), 27);
  EXPECT_EQ(number(tape.gradient(z, x)), 27);
}

TEST_F(GradientTapeTest, UnconnectedSourcesAreUndefinedOrZero) {
  const Tensor x = leaf(3), y = leaf(4);
  const Tensor constant = at::ones({2});
  GradientTape tape({.persistent = true});
  const Tensor target = x * x;
  const auto none = tape.gradient(target, std::vector<Tensor>{y, constant});
  EXPECT_FALSE(none[0].defined());
  EXPECT_FALSE(none[1].defined());
  const auto zero = tape.gradient(target, std::vector<Tensor>{y, constant},
                                  {.unconnected_gradients = UnconnectedGradients::ZERO});
  EXPECT_EQ(number(zero[0]), 0);
  EXPECT_EQ(zero[1].sizes(), (at::IntArrayRef{2}));
}

TEST_F(GradientTapeTest, OfWhatNoTapeRecordedIsUnconnected) {
  const Tensor x = leaf(3);
  const Tensor before = x * x;
  GradientTape tape;
  EXPECT_FALSE(tape.gradient(before, x).defined());
}

TEST_F(GradientTapeTest, WatchMakesATensorASource) {
  const Tensor x = at::full({}, 3.0, at::kDouble);
  GradientTape tape;
  tape.watch(x);
  EXPECT_EQ(number(tape.gradient(x * x, x)), 6);
  EXPECT_THROW(tape.watch(at::ones({2}, at::kLong)), InvalidArgumentError);
  EXPECT_THROW(tape.watch(Tensor()), InvalidArgumentError);
}

TEST_F(GradientTapeTest, NestedTapesGiveSecondDerivatives) {
  const Tensor x = leaf(3);
  GradientTape outer;
  Tensor first;
  {
    GradientTape inner;
    first = inner.gradient(x * x * x, x);
  }
  EXPECT_EQ(number(first), 27);
  EXPECT_EQ(number(outer.gradient(first, x)), 18);
}

// As of a generator and a discriminator.
TEST_F(GradientTapeTest, TapesSideBySideStopInAnyOrder) {
  const Tensor x = leaf(3);
  for (const bool in_order : {true, false}) {
    GradientTape first, second, third;
    const Tensor square = x * x;
    GradientTape& early = in_order ? first : second;
    GradientTape& late = in_order ? second : first;
    EXPECT_EQ(number(early.gradient(square, x)), 6);
    EXPECT_EQ(number(late.gradient(square * x, x)), 27) << "it no longer recorded";
    EXPECT_EQ(number(third.gradient(square * square, x)), 108) << "it no longer recorded";
    EXPECT_FALSE(at::GradMode::is_enabled());
  }
}

TEST_F(GradientTapeTest, ATapeThatStopsWithinANoGradientLeavesItOff) {
  const Tensor x = leaf(3);
  GradientTape outer;
  {
    NoGradient off;
    GradientTape inner;
    outer.stop_recording();
    EXPECT_EQ(number(inner.gradient(x * x, x)), 6);
    EXPECT_FALSE(at::GradMode::is_enabled());
  }
}

// Every order, in a step and outside of one.
TEST_F(GradientTapeTest, TapesAndNoGradientsEndInAnyOrder) {
  for (const bool before : {false, true}) {
    std::array<int, 4> order = {0, 1, 2, 3};
    do {
      at::GradMode::set_enabled(before);
      std::array<std::unique_ptr<GradientTape>, 4> tapes;
      std::array<std::unique_ptr<NoGradient>, 4> no_gradients;
      for (const size_t even : {0u, 2u}) {
        tapes[even] = std::make_unique<GradientTape>();
        no_gradients[even + 1] = std::make_unique<NoGradient>();
      }
      for (const int ended : order) {
        tapes[static_cast<size_t>(ended)].reset();
        no_gradients[static_cast<size_t>(ended)].reset();
        bool expected = before;
        for (size_t i = 0; i < 4; ++i) {
          if (tapes[i] != nullptr) expected = true;
          if (no_gradients[i] != nullptr) expected = false;
        }
        EXPECT_EQ(at::GradMode::is_enabled(), expected) << ::testing::PrintToString(order);
      }
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

TEST_F(GradientTapeTest, NoGradientsEndInAnyOrder) {
  for (const bool before : {false, true}) {
    at::GradMode::set_enabled(before);
    auto first = std::make_unique<NoGradient>();
    auto second = std::make_unique<NoGradient>();
    first.reset();
    EXPECT_FALSE(at::GradMode::is_enabled());
    second.reset();
    EXPECT_EQ(at::GradMode::is_enabled(), before);
  }
}

TEST_F(GradientTapeTest, ANoGradientThatEndsOnAnotherThreadLeavesThatOneAlone) {
  const Tensor x = leaf(3);
  at::GradMode::set_enabled(true);
  {
    GradientTape around;
    auto off = std::make_unique<NoGradient>();
    std::thread([&] {
      at::GradMode::set_enabled(false);
      off.reset();
      EXPECT_FALSE(at::GradMode::is_enabled());
    }).join();
    EXPECT_FALSE(at::GradMode::is_enabled());
    GradientTape tape;
    EXPECT_EQ(number(tape.gradient(x * x, x)), 6);
  }
  EXPECT_TRUE(at::GradMode::is_enabled());
}

TEST_F(GradientTapeTest, ANoGradientMayOutliveItsThread) {
  for (const bool before : {false, true}) {
    at::GradMode::set_enabled(before);
    std::unique_ptr<NoGradient> off;
    std::thread([&] { off = std::make_unique<NoGradient>(); }).join();
    off.reset();
    EXPECT_EQ(at::GradMode::is_enabled(), before);
  }
}

// Ends with its thread, after what the thread remembers of scopes, which comes to be later.
struct EndsLast {
  ~EndsLast() {
    scope.reset();
    if (ended != nullptr) *ended = internal::num_recording_scopes() == 0;
  }
  std::unique_ptr<NoGradient> scope;
  bool* ended = nullptr;
};

TEST_F(GradientTapeTest, ANoGradientMayOutliveWhatItsThreadRemembers) {
  bool ended = false;
  std::thread([&] {
    thread_local EndsLast last;
    last.ended = &ended;
    last.scope = std::make_unique<NoGradient>();
  }).join();
  EXPECT_TRUE(ended);
}

// A tape of this thread that ends with another one, when that remembers nothing any more.
TEST_F(GradientTapeTest, ATapeMayEndWithAnotherThread) {
  struct Holder {
    std::unique_ptr<GradientTape> tape;
  };
  auto tape = std::make_unique<GradientTape>();
  std::thread([&] {
    thread_local Holder holder;
    holder.tape = nullptr;
    const NoGradient remembered;  // later than the holder, so it goes first
    holder.tape = std::move(tape);
  }).join();
  EXPECT_EQ(internal::num_recording_scopes(), 0u);
}

TEST_F(GradientTapeTest, ATapeThatEndedOnAnotherThreadRecordsNoGradients) {
  const Tensor x = leaf(3);
  auto ended = std::make_unique<GradientTape>();
  std::thread([&] {
    at::GradMode::set_enabled(false);
    ended.reset();
    EXPECT_FALSE(at::GradMode::is_enabled());
  }).join();
  GradientTape tape;
  EXPECT_FALSE(tape.gradient(x * x, x).requires_grad());
}

TEST_F(GradientTapeTest, WithinANoGradientGradientsAreNotRecorded) {
  const Tensor x = leaf(3);
  GradientTape outer;
  const NoGradient off;
  GradientTape inner;
  EXPECT_FALSE(inner.gradient(x * x, x).requires_grad());
}

TEST_F(GradientTapeTest, ThereAreNoZerosOfAnUndefinedSource) {
  const Tensor x = leaf(3);
  GradientTape tape({.persistent = true});
  const std::vector<Tensor> sources{x, Tensor()};
  EXPECT_FALSE(tape.gradient(x * x, sources)[1].defined());
  EXPECT_THROW(tape.gradient(x * x, sources, {.unconnected_gradients = UnconnectedGradients::ZERO}),
               InvalidArgumentError);
}

TEST_F(GradientTapeTest, NoGradientHidesABlock) {
  const Tensor x = leaf(3);
  GradientTape tape;
  Tensor hidden;
  {
    NoGradient off;
    hidden = x * x;
  }
  EXPECT_EQ(number(tape.gradient(hidden * x, x)), 9);
}

TEST_F(GradientTapeTest, AnUndefinedTargetIsRefused) {
  const Tensor x = leaf(3);
  GradientTape tape;
  EXPECT_THROW(tape.gradient(Tensor(), x), InvalidArgumentError);
}

// What tapes take for a variable.
struct Weight {
  Tensor leaf;
  Tensor value() const { return leaf; }
};

TEST_F(GradientTapeTest, SourcesMayBeListedInBraces) {
  const Weight a{at::full({}, 2.0).requires_grad_()}, b{at::full({}, 3.0).requires_grad_()};
  GradientTape tape({.persistent = true});
  const Tensor product = a.value() * b.value();
  EXPECT_EQ(tape.gradient(product, {a})[0].item<double>(), 3);
  const auto both = tape.gradient(product, {a, b});
  EXPECT_EQ(both[1].item<double>(), 2);
}

TEST_F(GradientTapeTest, WatchesNoLongerThanItLives) {
  const Tensor x = at::ones({2});
  {
    GradientTape tape({.persistent = true});
    tape.watch(x);
    const Tensor y = (x * x).sum();
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(at::equal(tape.gradient(y, x), at::full({2}, 2.0)));
  }
  EXPECT_FALSE(x.requires_grad());
  x.add_(1);
  const Tensor own = at::ones({2}).set_requires_grad(true);
  { GradientTape().watch(own); }
  EXPECT_TRUE(own.requires_grad());
}

// The inner tape's end must not end the outer one's watch, whichever began.
TEST_F(GradientTapeTest, ATensorIsWatchedUntilItsLastTapeEnds) {
  for (const bool outer_first : {true, false}) {
    const Tensor x = at::full({}, 3.0);
    {
      GradientTape outer;
      if (outer_first) outer.watch(x);
      Tensor first;
      {
        GradientTape inner;
        inner.watch(x);
        if (!outer_first) outer.watch(x);
        first = inner.gradient(x * x * x, x);
      }
      ASSERT_TRUE(x.requires_grad());
      EXPECT_EQ(outer.gradient(first, x).item<double>(), 18);
    }
    EXPECT_FALSE(x.requires_grad());
  }
}

TEST_F(GradientTapeTest, WatchesWhatItHasComputed) {
  const Tensor x = at::ones({2});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = x * 2;
  {
    GradientTape inner;
    inner.watch(y);
  }
  EXPECT_TRUE(at::equal(tape.gradient((y * y).sum(), x), at::full({2}, 8.0)));
}

}  // namespace
}  // namespace cohort
