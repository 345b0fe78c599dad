#include "cohort/ops/ctc.h"

#include <ATen/ops/full.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"
#include "cohort/ops/make_tensor.h"

namespace cohort::nn {
namespace {

using ::testing::HasSubstr;

// Two sequences of three frames whose classes are alike: each path has the probability 1/27.
const Tensor& even() {
  static const Tensor logits = at::zeros({3, 2, 3});
  return logits;
}

TEST(CtcLoss, CountsTheAlignments) {
  // 1 2: five alignments of seven paths, "1 2" padded by blanks or repeats; 1 1: only "1 _ 1".
  const Tensor losses =
      ctc_loss(constant({{1, 2}, {1, 1}}), even(), constant({2, 2}), constant({3, 3}));
  EXPECT_NEAR(losses[0].item<double>(), -std::log(5.0 / 27), 1e-5);
  EXPECT_NEAR(losses[1].item<double>(), -std::log(1.0 / 27), 1e-5);
}

TEST(CtcLoss, TakesLabelsOfAnyForm) {
  const Tensor dense = ctc_loss(constant({{1, 0}, {0, 1}}), even(), constant({1, 2}),
                                constant({3, 3}), {.blank_index = -1});
  const RaggedTensor rows = RaggedTensor::from_row_lengths(constant({1, 0, 1}), {1, 2});
  EXPECT_TRUE(dense.equal(ctc_loss(rows, even(), constant({3, 3}), {.blank_index = 2})));
  EXPECT_TRUE(dense.equal(
      ctc_loss(rows.to_sparse(), even(), Tensor(), constant({3, 3}), {.blank_index = 2})));
  EXPECT_TRUE(dense.equal(ctc_loss(rows, even().transpose(0, 1), constant({3, 3}),
                                   {.logits_time_major = false, .blank_index = 2})));
}

TEST(CtcLoss, ASequenceWithoutEnoughFramesIsInfiniteAndMovesNothing) {
  const Tensor logits = at::zeros({3, 2, 3}).requires_grad_();
  const Tensor losses =
      ctc_loss(constant({{1, 1}, {1, 2}}), logits, constant({2, 2}), constant({2, 3}));
  EXPECT_TRUE(std::isinf(losses[0].item<float>()));
  losses.sum().backward();
  EXPECT_EQ(logits.grad().select(1, 0).abs().sum().item<float>(), 0);
  EXPECT_GT(logits.grad().select(1, 1).abs().sum().item<float>(), 0);
}

TEST(CtcLoss, ASequenceWithoutFramesIsInfiniteUnlessItHasNoLabels) {
  const Tensor losses = ctc_loss(constant({{1, 1}, {1, 2}}), at::zeros({3, 2, 3}), constant({2, 0}),
                                 constant({0, 0}));
  EXPECT_TRUE(std::isinf(losses[0].item<float>()));
  EXPECT_FALSE(std::isinf(losses[1].item<float>()));
}

TEST(CtcLoss, RefusesWhatDoesNotFit) {
  const auto refused = [](const Tensor& labels, const Tensor& label_length,
                          const Tensor& logit_length, CtcLossOptions options = {}) {
    return thrown<InvalidArgumentError>(
        [&] { ctc_loss(labels, even(), label_length, logit_length, options); });
  };
  const Tensor labels = constant({{1, 2}, {1, 1}});
  EXPECT_THAT(refused(labels, constant({2, 3}), constant({3, 3})),
              HasSubstr("label_length[1] is 3"));
  EXPECT_THAT(refused(labels, constant({2, 2}), constant({4, 3})),
              HasSubstr("logit_length[0] is 4"));
  EXPECT_THAT(refused(constant({{1, 3}, {1, 1}}), constant({2, 2}), constant({3, 3})),
              HasSubstr("labels from 1 to 3 for 3 classes"));
  EXPECT_THAT(refused(labels, constant({2, 2}), constant({3, 3}), {.blank_index = 3}),
              HasSubstr("blank_index is 3"));
  EXPECT_THAT(refused(labels.to_sparse(), Tensor(), constant({3, 3})), HasSubstr("blank_index"));
  EXPECT_THAT(refused(constant({1, 2}), constant({2, 2}), constant({3, 3})), HasSubstr("labels"));
}

TEST(CtcGreedyDecoder, MergesRepeatsAndLeavesBlanksOut) {
  // The best classes are 1 1 0(blank) 1.
  Tensor logits = at::zeros({4, 1, 2});
  for (const int64_t t : {0, 1, 3}) logits[t][0][1] = 2;
  logits[2][0][0] = 3;
  const auto decode = [&](CtcGreedyDecoderOptions options) {
    options.blank_index = 0;
    return ctc_greedy_decoder(logits, constant({4}), options);
  };
  EXPECT_TRUE(decode({}).decoded.to_dense().equal(at::tensor({1, 1}, int64).view({1, 2})));
  EXPECT_EQ(decode({.merge_repeated = false}).decoded.size(1), 3);
  EXPECT_FLOAT_EQ(decode({}).neg_sum_logits.item<float>(), -9);
}

}  // namespace
}  // namespace cohort::nn
