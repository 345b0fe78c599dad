#include "cohort/keras/utils.h"

#include <ATen/ops/rand.h>
#include <gtest/gtest.h>

#include "cohort/ops/random.h"

namespace cohort::keras::utils {
namespace {

TEST(SetRandomSeed, SeedsCohortsNumbersAndLibtorchs) {
  const auto before = random::get_seed();
  const auto draw = [] {
    set_random_seed(7);
    return std::pair(random::uniform({3}), at::rand({3}));
  };
  const auto [own, torchs] = draw();
  const auto [own_again, torchs_again] = draw();
  EXPECT_TRUE(own.equal(own_again));
  EXPECT_TRUE(torchs.equal(torchs_again));
  EXPECT_FALSE(at::rand({3}).equal(torchs));
  random::set_seed(before.value_or(0));
}

}  // namespace
}  // namespace cohort::keras::utils
