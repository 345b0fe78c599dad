#include "cohort/keras/base/tensor_notes.h"

#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <vector>

namespace cohort::internal {
namespace {

TEST(TensorNotes, StayAsLongAsTheirTensors) {
  const Tensor note = at::ones({1});
  TensorNotes notes;
  EXPECT_TRUE(notes.empty());
  std::vector<Tensor> living;
  for (int i = 0; i < 1000; ++i) {
    notes.add(living.emplace_back(at::ones({2})), note);
    notes.add(at::ones({2}), note);  // it is gone at once
    ASSERT_LE(notes.size(), living.size() + living.size() / 8 + 2);
  }
  for (const Tensor& tensor : living) ASSERT_TRUE(notes.find(tensor).is_same(note));
  living.resize(10);
  for (int i = 0; i < 1000; ++i) notes.add(at::ones({2}), note);
  EXPECT_LE(notes.size(), 12);
  for (const Tensor& tensor : living) EXPECT_TRUE(notes.find(tensor).is_same(note));
}

TEST(TensorNotes, ALaterOneTakesThePlaceOfAnEarlier) {
  TensorNotes notes;
  const Tensor about = at::ones({2}), first = at::ones({1}), second = at::ones({1});
  notes.add(about, first);
  notes.add(about, second);
  EXPECT_TRUE(notes.find(about).is_same(second));
  EXPECT_EQ(notes.size(), 1);
  Tensor(about).add_(1);
  EXPECT_TRUE(notes.find(about).is_same(second));
  EXPECT_FALSE(notes.find_of_unchanged(about).defined());
}

}  // namespace
}  // namespace cohort::internal
