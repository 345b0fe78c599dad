#include "cohort/ops/ctc.h"

#include <ATen/ops/_ctc_loss.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <limits>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/libtorch_error.h"

namespace cohort::nn {
namespace {

using internal::describe;
using internal::libtorch_call;
using internal::str;

bool is_integer_tensor(const Tensor& x) {
  return x.defined() && at::isIntegralType(x.scalar_type(), /*includeBool=*/false);
}

// The lengths of `batch` sequences, none beyond `limit`.
std::vector<int64_t> lengths_of(const char* what, const char* name, const Tensor& lengths,
                                int64_t batch, int64_t limit) {
  if (!is_integer_tensor(lengths) || lengths.dim() != 1 || lengths.size(0) != batch) {
    throw InvalidArgumentError(str("nn::", what, ": ", name,
                                   " are integers [batch] for a batch of ", batch, ", but got ",
                                   describe(lengths)));
  }
  const Tensor host = lengths.detach().to(at::kCPU, int64).contiguous();
  const std::span numbers(host.data_ptr<int64_t>(), static_cast<size_t>(batch));
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] >= 0 && numbers[i] <= limit) continue;
    throw InvalidArgumentError(str("nn::", what, ": ", name, "[", i, "] is ", numbers[i],
                                   "; it must be from 0 to ", limit));
  }
  return {numbers.begin(), numbers.end()};
}

int64_t blank_of(const char* what, int64_t blank, int64_t classes) {
  const int64_t counted = blank < 0 ? blank + classes : blank;
  if (counted >= 0 && counted < classes) return counted;
  throw InvalidArgumentError(
      str("nn::", what, ": blank_index is ", blank, ", but there are ", classes, " classes"));
}

// Labels of all sequences, one after another, on the host.
struct CtcLabels {
  Tensor flat;  // [n], int64
  std::vector<int64_t> lengths;
};

CtcLabels labels_of_dense(const Tensor& labels, const Tensor& label_length, int64_t batch) {
  if (!is_integer_tensor(labels) || labels.dim() != 2 || labels.size(0) != batch) {
    throw InvalidArgumentError(str(
        "nn::ctc_loss: labels are integers [batch, most per sequence] for logits of a batch of ",
        batch, ", but got ", describe(labels)));
  }
  CtcLabels result;
  result.lengths = lengths_of("ctc_loss", "label_length", label_length, batch, labels.size(1));
  const Tensor host = labels.detach().to(at::kCPU, int64);
  const Tensor lengths = at::tensor(result.lengths).unsqueeze(1);
  result.flat = host.masked_select(at::arange(labels.size(1)).unsqueeze(0).lt(lengths));
  return result;
}

CtcLabels labels_of_ragged(const RaggedTensor& labels, int64_t batch) {
  if (!labels.flat_values().is_tensor() || !is_integer_tensor(labels.values()) ||
      labels.values().dim() != 1 || labels.nrows() != batch) {
    throw InvalidArgumentError(
        str("nn::ctc_loss: ragged labels are rows of integers for logits of ", "a batch of ", batch,
            ", but got ", labels.nrows(), " rows"));
  }
  return {labels.values().detach().to(at::kCPU, int64),
          lengths_of("ctc_loss", "row lengths of the labels", labels.row_lengths(), batch,
                     labels.values().size(0))};
}

CtcLabels labels_of_sparse(const Tensor& coo, int64_t batch) {
  if (coo.sparse_dim() != 2 || coo.dense_dim() != 0 || coo.size(0) != batch ||
      !is_integer_tensor(coo._values())) {
    throw InvalidArgumentError(
        str("nn::ctc_loss: sparse labels are integers [batch, most per sequence] for logits of a ",
            "batch of ", batch, ", but got ", describe(coo)));
  }
  const Tensor rows = coo._indices().select(0, 0).to(at::kCPU).contiguous();
  CtcLabels result{coo._values().detach().to(at::kCPU, int64),
                   std::vector<int64_t>(static_cast<size_t>(batch))};
  int64_t before = 0;
  for (const int64_t row : std::span(rows.data_ptr<int64_t>(), static_cast<size_t>(rows.numel()))) {
    if (row < before) {
      throw InvalidArgumentError(
          "nn::ctc_loss: the entries of sparse labels are listed row by row");
    }
    ++result.lengths[static_cast<size_t>(row)];
    before = row;
  }
  return result;
}

void check_classes(const Tensor& flat, int64_t classes) {
  if (flat.numel() == 0) return;
  const auto least = flat.min().item<int64_t>();
  const auto greatest = flat.max().item<int64_t>();
  if (least >= 0 && greatest < classes) return;
  throw InvalidArgumentError(str("nn::ctc_loss: labels from ", least, " to ", greatest, " for ",
                                 classes, " classes, of which the blank is one"));
}

int64_t check_frames(const char* what, const char* name, const Tensor& frames, bool time_major) {
  if (frames.defined() && frames.is_floating_point() && frames.dim() == 3) {
    return frames.size(time_major ? 1 : 0);
  }
  throw InvalidArgumentError(
      str("nn::", what, ": ", name, " are floating ",
          time_major ? "[frames, batch, classes]" : "[batch, frames, classes]", ", but got ",
          describe(frames)));
}

// Sequences with labels and no frames, of whose losses libtorch knows nothing. Shape: [batch].
Tensor without_frames(const std::vector<int64_t>& frames, const std::vector<int64_t>& labels) {
  return at::tensor(frames).eq(0).logical_and(at::tensor(labels).gt(0));
}

Tensor loss_of(const CtcLabels& labels, const Tensor& logits, const Tensor& logit_length,
               const CtcLossOptions& options) {
  const Tensor frames = options.logits_time_major ? logits : logits.transpose(0, 1);
  const int64_t classes = frames.size(2);
  const int64_t blank = blank_of("ctc_loss", options.blank_index.value_or(0), classes);
  const std::vector<int64_t> lengths =
      lengths_of("ctc_loss", "logit_length", logit_length, frames.size(1), frames.size(0));
  check_classes(labels.flat, classes);
  return libtorch_call("nn::ctc_loss", [&] {
    const bool narrow = frames.element_size() < 4;
    const Tensor logs = at::log_softmax(frames, -1, narrow ? float32 : frames.scalar_type());
    // The losses stay infinite here in spite of zero_infinity; their gradients are 0.
    const Tensor losses = std::get<0>(at::_ctc_loss(logs, labels.flat.to(logs.device()), lengths,
                                                    labels.lengths, blank, /*zero_infinity=*/true));
    return at::where(without_frames(lengths, labels.lengths).to(losses.device()),
                     std::numeric_limits<double>::infinity(), losses)
        .to(logits.scalar_type());
  });
}

void need_blank(const CtcLossOptions& options, const char* kind) {
  if (options.blank_index) return;
  throw InvalidArgumentError(str("nn::ctc_loss of ", kind, " labels needs a blank_index"));
}

}  // namespace

Tensor ctc_loss(const Tensor& labels, const Tensor& logits, const Tensor& label_length,
                const Tensor& logit_length, const CtcLossOptions& options) {
  const int64_t batch = check_frames("ctc_loss", "logits", logits, options.logits_time_major);
  if (!labels.defined() || !labels.is_sparse()) {
    return loss_of(labels_of_dense(labels, label_length, batch), logits, logit_length, options);
  }
  need_blank(options, "sparse");
  if (label_length.defined()) {
    throw InvalidArgumentError(
        "nn::ctc_loss: sparse labels say their lengths; label_length must be undefined");
  }
  return loss_of(labels_of_sparse(labels, batch), logits, logit_length, options);
}

Tensor ctc_loss(const RaggedTensor& labels, const Tensor& logits, const Tensor& logit_length,
                const CtcLossOptions& options) {
  const int64_t batch = check_frames("ctc_loss", "logits", logits, options.logits_time_major);
  need_blank(options, "ragged");
  return loss_of(labels_of_ragged(labels, batch), logits, logit_length, options);
}

CtcDecoded ctc_greedy_decoder(const Tensor& inputs, const Tensor& sequence_length,
                              const CtcGreedyDecoderOptions& options) {
  constexpr const char* kWhat = "ctc_greedy_decoder";
  const int64_t batch = check_frames(kWhat, "inputs", inputs, /*time_major=*/true);
  const int64_t frames = inputs.size(0);
  const int64_t blank = blank_of(kWhat, options.blank_index.value_or(-1), inputs.size(2));
  const auto lengths = lengths_of(kWhat, "sequence_length", sequence_length, batch, frames);
  const auto [values, classes] = inputs.detach().max(-1);  // [frames, batch]
  const Tensor host_classes = classes.to(at::kCPU).contiguous();
  const int64_t* const best = host_classes.data_ptr<int64_t>();
  std::vector<int64_t> rows, columns, labels;
  int64_t most = 0;
  for (int64_t b = 0; b < batch; ++b) {
    int64_t before = -1;
    int64_t column = 0;
    for (int64_t t = 0; t < lengths[static_cast<size_t>(b)]; ++t) {
      const int64_t label = best[t * batch + b];
      const bool repeated = options.merge_repeated && label == before;
      before = label;
      if (label == blank || repeated) continue;
      rows.push_back(b);
      columns.push_back(column++);
      labels.push_back(label);
    }
    most = std::max(most, column);
  }
  const Tensor indices = at::stack({at::tensor(rows, int64), at::tensor(columns, int64)});
  const Tensor within = at::arange(frames).unsqueeze(1).lt(at::tensor(lengths).unsqueeze(0));
  const Tensor sums = at::where(within.to(values.device()), values, 0).sum(0).neg().unsqueeze(1);
  return {
      at::sparse_coo_tensor(indices, at::tensor(labels, int64), {batch, most}).to(inputs.device()),
      sums};
}

}  // namespace cohort::nn
