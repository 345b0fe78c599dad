// Masks: which steps of padded sequences count.
//
// A Masking layer, or an Embedding with mask_zero, marks its output; layers that give a value for
// each step hand the mark on, recurrent layers and pooling leave out the steps that do not count,
// and so do losses and metrics. As in Keras nobody passes a mask along: it belongs to the tensor.
#pragma once

#include "cohort/core/structure/tensor.h"

namespace cohort::internal {

// [batch, steps], bool; undefined where all steps of `values` count. Known to the thread that has
// marked them.
Tensor mask_of(const Tensor& values);

// `values`, marked; as they are where the mask is undefined.
Tensor with_mask(Tensor values, const Tensor& mask);

// `output`, with the mask of the input that it was made of, step by step.
Tensor keep_mask(const Tensor& input, Tensor output);

// 1 where a step counts and 0 elsewhere, in the dtype and rank of `values`.
Tensor mask_factors(const Tensor& mask, const Tensor& values);

// What is added to scores that do not count, as Keras has it: no infinity, so that there is a
// softmax where none counts.
double large_negative(const Tensor& scores);

// How many of `losses` count, 1 at least. Shape: [].
Tensor count_unmasked(const Tensor& mask, const Tensor& losses);

}  // namespace cohort::internal
