// Summaries: numbers, distributions and texts of a training, for TensorBoard.
//
//   auto writer = tf::summary::create_file_writer("logs/train");
//   auto scope = writer.as_default();
//   tf::summary::scalar("loss", loss, {.step = step});
//   tf::summary::histogram("dense/kernel", kernel.value(), {.step = step});
//   tf::summary::text("configuration", "batch 64, **Adam**", {.step = 0});
//
// Each call records with the calling thread's writer and returns whether it did: not where there is
// none, nor where should_record_summaries() is false. In a step only replica 0 records.
// Thread safety: any thread. They return before anything is written, unless the disk is far behind.
// Errors of all: InvalidArgument (no step given or set; a name or description that is not UTF-8),
// FailedPrecondition (the writer is closed), of writing an earlier summary.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cohort/core/export.h"
#include "cohort/core/structure/string_tensor.h"
#include "cohort/core/structure/tensor.h"
#include "cohort/train/summary/summary_writer.h"

namespace cohort::summary {

struct SummaryOptions {
  std::optional<int64_t> step = {};  // default: that of as_default or set_step
  std::string description = "";      // Markdown
};

struct HistogramOptions {
  std::optional<int64_t> step = {};
  int64_t buckets = 30;  // below 0: as 0
  std::string description = "";
};

// A number over the steps, stored as float32.
// Shapes: data [] any dtype of numbers. Errors: also InvalidArgument (another shape, complex).
COHORT_API bool scalar(std::string_view name, const Tensor& data,
                       const SummaryOptions& options = {});
COHORT_API bool scalar(std::string_view name, double data, const SummaryOptions& options = {});

// The distribution of values: how many lie in each of `buckets` ranges of equal width between the
// smallest and the largest. Values that are not finite are left out.
// Shapes: data [..] any dtype of real numbers -> [buckets, 3] of (left edge, right edge, count).
// Errors: also InvalidArgument (complex).
COHORT_API bool histogram(std::string_view name, const Tensor& data,
                          const HistogramOptions& options = {});

// Text, which is shown as Markdown; a tensor of texts as a table.
COHORT_API bool text(std::string_view name, const StringTensor& data,
                     const SummaryOptions& options = {});
COHORT_API bool text(std::string_view name, std::string_view data,
                     const SummaryOptions& options = {});

struct ImageOptions {
  std::optional<int64_t> step = {};
  int64_t max_outputs = 3;  // how many of the images are recorded, the first ones
  std::string description = "";
};

// Images, each stored as a PNG.
// Shapes: data [images, height, width, channels] with 1 (grey), 2 (grey and alpha), 3 (RGB) or 4
// channels; floating numbers from 0 to 1, or integers from 0 to their dtype's largest. Others
// become the nearest that there is. Errors: also InvalidArgument (another shape; max_outputs below
// 0).
COHORT_API bool image(std::string_view name, const Tensor& data, const ImageOptions& options = {});

// A graph of operations: a serialized GraphDef of TensorFlow's
// (tensorflow/core/framework/graph.proto), which is not looked into. TensorBoard's page of graphs
// draws it. A run has one.
COHORT_API bool graph(std::string_view graph_def);

// The layers of a model and what flows between them, as ModelHandle::to_json gives them, which
// TensorBoard's page of graphs draws. A run has one such model.
COHORT_API bool keras_model(std::string_view name, std::string_view json,
                            const SummaryOptions& options = {});

}  // namespace cohort::summary
