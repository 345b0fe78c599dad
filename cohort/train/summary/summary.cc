#include "cohort/train/summary/summary.h"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/image/color.h"
#include "cohort/image/encode.h"
#include "cohort/train/summary/event_encoding.h"
#include "cohort/train/summary/event_writer.h"
#include "cohort/train/summary/histogram.h"
#include "cohort/train/summary/recording.h"

namespace cohort::summary {
namespace {

using internal::EventDtype;
using internal::quoted;
using internal::str;

// Records the TensorProto that encode() makes, where summaries are recorded.
template <class Options, class Encode>
bool record(const char* plugin, std::string_view name, const Options& options, const Encode& encode,
            std::string_view plugin_content = {}) {
  if (!should_record_summaries()) return false;
  const std::optional<int64_t> step = options.step ? options.step : experimental::get_step();
  if (!step) {
    throw InvalidArgumentError(str("No step set: the summary ", quoted(name),
                                   " names none; give one as .step, to as_default, or to "
                                   "summary::experimental::set_step"));
  }
  internal::recording_state()->writer->add(
      internal::encode_summary({.wall_time = internal::wall_time(),
                                .step = *step,
                                .tag = name,
                                .plugin = plugin,
                                .plugin_content = plugin_content,
                                .description = options.description,
                                .tensor = encode()}));
  return true;
}

std::string encode_scalar(double value) {
  const auto bits = std::bit_cast<std::array<char, sizeof(float)>>(static_cast<float>(value));
  return internal::encode_event_numbers(EventDtype::kFloat, {}, {bits.data(), bits.size()});
}

void require_images(std::string_view name, const Tensor& data, const ImageOptions& options) {
  const bool fits = data.defined() && data.dim() == 4 && data.size(3) >= 1 && data.size(3) <= 4;
  if (!fits) {
    throw InvalidArgumentError(str("the summary ", quoted(name), " is of ",
                                   internal::describe(data),
                                   "; images are [images, height, width, 1 to 4 channels]"));
  }
  if (options.max_outputs < 0) {
    throw InvalidArgumentError(str("the summary ", quoted(name), ": max_outputs is ",
                                   options.max_outputs, "; it must not be below 0"));
  }
}

// What cannot be drawn on an axis.
void require_real(std::string_view name, const Tensor& data) {
  if (data.defined() && !data.is_complex()) return;
  throw InvalidArgumentError(str("the summary ", quoted(name), " is of ", internal::describe(data),
                                 "; give real numbers"));
}

}  // namespace

bool scalar(std::string_view name, const Tensor& data, const SummaryOptions& options) {
  return record("scalars", name, options, [&] {
    require_real(name, data);
    if (data.dim() != 0) {
      throw InvalidArgumentError(str("the summary ", quoted(name), " is of ",
                                     internal::describe(data),
                                     "; a scalar's shape is [], so reduce it first"));
    }
    return encode_scalar(data.item<double>());
  });
}

bool scalar(std::string_view name, double data, const SummaryOptions& options) {
  return record("scalars", name, options, [&] { return encode_scalar(data); });
}

bool histogram(std::string_view name, const Tensor& data, const HistogramOptions& options) {
  return record("histograms", name, options, [&] {
    require_real(name, data);
    const std::vector<double> rows = internal::histogram_buckets(data, options.buckets);
    const int64_t shape[] = {static_cast<int64_t>(rows.size() / 3), 3};
    return internal::encode_event_numbers(
        EventDtype::kDouble, shape,
        {reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(double)});
  });
}

bool text(std::string_view name, const StringTensor& data, const SummaryOptions& options) {
  return record("text", name, options,
                [&] { return internal::encode_event_strings(data.sizes(), data.to_vector()); });
}

bool text(std::string_view name, std::string_view data, const SummaryOptions& options) {
  return text(name, StringTensor::scalar(data), options);
}

bool image(std::string_view name, const Tensor& data, const ImageOptions& options) {
  return record("images", name, options, [&] {
    require_images(name, data, options);
    const Tensor shown = data.detach().narrow(0, 0, std::min(options.max_outputs, data.size(0)));
    const Tensor pixels =
        cohort::image::convert_image_dtype(shown, uint8, /*saturate=*/true).cpu().contiguous();
    // The width and the height, then the files.
    std::vector<std::string> values = {str(data.size(2)), str(data.size(1))};
    for (int64_t i = 0; i < pixels.size(0); ++i) values.push_back(io::encode_png(pixels[i]));
    const int64_t shape[] = {static_cast<int64_t>(values.size())};
    return internal::encode_event_strings(shape, values);
  });
}

bool keras_model(std::string_view name, std::string_view json, const SummaryOptions& options) {
  return record(
      "graph_keras_model", name, options,
      [&] {
        const std::string whole(json);
        return internal::encode_event_strings({}, {&whole, 1});
      },
      /*plugin_content=*/"1");  // its version, without which TensorBoard passes the model over
}

bool graph(std::string_view graph_def) {
  if (!should_record_summaries()) return false;
  internal::recording_state()->writer->add(
      internal::encode_graph(internal::wall_time(), graph_def));
  return true;
}

}  // namespace cohort::summary
