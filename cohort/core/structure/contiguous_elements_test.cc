#include "cohort/core/structure/contiguous_elements.h"

#include <ATen/ops/_neg_view.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/ones.h>
#include <c10/util/complex.h>
#include <gtest/gtest.h>

namespace cohort::internal {
namespace {

TEST(ContiguousElements, OfWhatHasThemAreTheSameMemory) {
  const Tensor plain = at::arange(6);
  EXPECT_TRUE(has_contiguous_elements(plain));
  EXPECT_EQ(contiguous_elements(plain).data_ptr(), plain.data_ptr());
}

TEST(ContiguousElements, OfAViewAreInOrder) {
  const Tensor columns = at::arange(6).reshape({2, 3}).t();
  EXPECT_FALSE(has_contiguous_elements(columns));
  EXPECT_EQ(contiguous_elements(columns).data_ptr<int64_t>()[1], 3);
}

// These are contiguous views, whose memory is that of the numbers they were made of.
TEST(ContiguousElements, OfConjugatesAndNegativesHaveTheirSigns) {
  const Tensor conjugates = at::complex(at::ones({2}), at::ones({2}) * 2).conj();
  EXPECT_FALSE(has_contiguous_elements(conjugates));
  const Tensor elements = contiguous_elements(conjugates);
  EXPECT_TRUE(has_contiguous_elements(elements));
  EXPECT_EQ(elements.data_ptr<c10::complex<float>>()[1], c10::complex<float>(1, -2));
  const Tensor negatives = at::_neg_view(at::ones({2}));
  EXPECT_FALSE(has_contiguous_elements(negatives));
  EXPECT_EQ(contiguous_elements(negatives).data_ptr<float>()[1], -1);
}

}  // namespace
}  // namespace cohort::internal
