#include "cohort/ops/plan/onednn.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace cohort::internal::plan {
namespace {

// Of a 3x3 kernel, [filters, 4 channels, 3, 3].
struct Kernel {
  explicit Kernel(int64_t filters)
      : shape{filters, 4, 3, 3}, values(static_cast<size_t>(filters * 4 * 9)) {
    std::iota(values.begin(), values.end(), 0.f);
  }
  Layout layout(Tag tag) const { return {shape, kFloat, tag}; }

  dnnl::memory::dims shape;
  std::vector<float> values;
};

TEST(RelayoutTest, OneBlockThatIsTheWholeDimensionIsNotCopied) {
  const Kernel kernel(64);
  Relayout same(kernel.layout(Tag::hwio), kernel.layout(Tag::Acdb64a));
  EXPECT_EQ(same(kernel.values.data()), kernel.values.data());
  std::vector<float> to(kernel.values.size());
  same.to(kernel.values.data(), to.data());
  EXPECT_EQ(to, kernel.values);
}

TEST(RelayoutTest, OtherLayoutsAreCopied) {
  const Kernel two_blocks(128);
  const Kernel part_of_a_block(32);
  for (const Kernel* kernel : {&two_blocks, &part_of_a_block}) {
    Relayout there(kernel->layout(Tag::hwio), kernel->layout(Tag::Acdb64a));
    Relayout back(kernel->layout(Tag::Acdb64a), kernel->layout(Tag::hwio));
    const float* const blocked = there(kernel->values.data());
    EXPECT_NE(blocked, kernel->values.data());
    std::vector<float> to(kernel->values.size());
    back.to(blocked, to.data());
    EXPECT_EQ(to, kernel->values);
  }
  const Kernel kernel(64);
  Relayout by_filter(kernel.layout(Tag::hwio), kernel.layout(Tag::ohwi));
  EXPECT_NE(by_filter(kernel.values.data()), kernel.values.data());
}

}  // namespace
}  // namespace cohort::internal::plan
