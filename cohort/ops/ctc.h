// Connectionist temporal classification (Graves et al., 2006): losses and labels of sequences whose
// labels are not aligned with their frames, as in speech and handwriting.
//
//   Tensor losses = nn::ctc_loss(labels, logits, label_length, logit_length);        // [batch]
//   auto [decoded, negative_sums] = nn::ctc_greedy_decoder(logits, logit_length);
#pragma once

#include <cstdint>
#include <optional>

#include "cohort/core/export.h"
#include "cohort/core/structure/ragged_tensor.h"
#include "cohort/core/structure/tensor.h"

namespace cohort::nn {

struct CtcLossOptions {
  // The logits are [frames, batch, classes]; false: [batch, frames, classes].
  bool logits_time_major = true;
  // The class that stands for no label; below 0 it counts from the number of classes. Missing: 0,
  // and an error with labels that are sparse or ragged.
  std::optional<int64_t> blank_index = std::nullopt;
};

// The negative logarithm of the probability of each sequence's labels, over all alignments;
// infinite where they need more frames than there are. The gradient of such a sequence is 0
// (TensorFlow's is not). float16 and bfloat16 are computed as float32. Differentiable once, by the
// logits.
// Shapes: labels [batch, most per sequence] of int32 or int64; logits as in the options, floating;
// label_length and logit_length [batch] -> [batch]. Labels may be a COO tensor, whose entries are
// listed row by row; label_length is then undefined.
// Errors: InvalidArgument (shapes; a length beyond its dimension; a label that is no class; no
// blank_index where one is needed).
COHORT_API Tensor ctc_loss(const Tensor& labels, const Tensor& logits, const Tensor& label_length,
                           const Tensor& logit_length, const CtcLossOptions& options = {});
COHORT_API Tensor ctc_loss(const RaggedTensor& labels, const Tensor& logits,
                           const Tensor& logit_length, const CtcLossOptions& options = {});

struct CtcGreedyDecoderOptions {
  bool merge_repeated = true;  // equal labels of consecutive frames are one
  // The same as CtcLossOptions::blank_index; missing: the last class.
  std::optional<int64_t> blank_index = std::nullopt;
};

struct CtcDecoded {
  Tensor decoded;         // [batch, most labels], a COO tensor of int64
  Tensor neg_sum_logits;  // [batch, 1]: the negative sum of each frame's largest logit
};

// The labels of each frame's largest logit, without blanks.
// Shapes: inputs [frames, batch, classes], floating; sequence_length [batch], integers.
// Errors: InvalidArgument (shapes; a length beyond the frames).
COHORT_API CtcDecoded ctc_greedy_decoder(const Tensor& inputs, const Tensor& sequence_length,
                                         const CtcGreedyDecoderOptions& options = {});

}  // namespace cohort::nn
