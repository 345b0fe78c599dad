// Decides which operations become one unit, and how much of each image is computed.
#include <algorithm>

#include "cohort/core/error.h"
#include "cohort/ops/kernels/max_pool_kernels.h"
#include "cohort/ops/plan/activation_kernels.h"
#include "cohort/ops/plan/onednn.h"
#include "cohort/ops/plan/plan.h"
#include "cohort/ops/plan/single_channel.h"

namespace cohort::internal::plan {
namespace {

// A unit to be.
struct Draft {
  Operation operation;  // the first of those in it
  Fused fused;
  Shape in;
  Image result;           // of a convolution, ahead of what is fused
  bool reshaped = false;  // whether the next one sees its result in another shape
};

Image image_of(const Shape& shape) { return {shape[1], shape[2], shape[3]}; }

int64_t example_size(const Shape& shape) {
  int64_t size = 1;
  for (size_t d = 1; d < shape.size(); ++d) size *= shape[d];
  return size;
}

bool pools_last(const Draft& draft) {
  return draft.fused.pools() || std::holds_alternative<MaxPooling>(draft.operation);
}

bool is_relu_alone(const Draft& draft) {
  return std::holds_alternative<Activation>(draft.operation) && draft.fused.relu();
}

// Whether `activation` became part of the draft. Relu and max-pooling commute, and a second relu
// does nothing. A function whose gradient needs what it was given would need that kept.
bool fuse_activation(const Activation& activation, Draft& last) {
  const bool is_relu = activation.function == Function::kRelu;
  if (last.fused.activation) return is_relu && last.fused.relu();
  const bool fits = pools_last(last) ? is_relu
                                     : (std::holds_alternative<Convolution>(last.operation) ||
                                        std::holds_alternative<Dense>(last.operation)) &&
                                           !reads_input(activation.function);
  if (fits) last.fused.activation = activation;
  return fits;
}

// Whether `operation` became part of the last draft.
bool fuse(const Operation& operation, std::vector<Draft>& drafts) {
  if (drafts.empty()) return false;
  Draft& last = drafts.back();
  if (const auto* activation = std::get_if<Activation>(&operation)) {
    return fuse_activation(*activation, last);
  }
  const auto* pooling = std::get_if<MaxPooling>(&operation);
  if (pooling != nullptr && !last.reshaped && is_relu_alone(last)) {
    last.operation = *pooling;
    last.fused.tile = pooling->size;
    return true;
  }
  if (pooling == nullptr || last.reshaped || !std::holds_alternative<Convolution>(last.operation) ||
      pools_last(last) || (last.fused.activation && !last.fused.relu())) {
    return false;
  }
  last.fused.tile = pooling->size;
  return last.fused.pools();
}

std::vector<Draft> draft_units(const std::vector<Operation>& operations, const Shape& input,
                               Shape& output) {
  std::vector<Draft> drafts;
  Shape shape = input;
  for (const Operation& operation : operations) {
    Shape next = result_shape(operation, shape);
    if (next.empty()) {
      throw NotPlanned(str("a ", describe(operation), " does not take ", shape_str(shape)));
    }
    const bool reshapes =
        std::holds_alternative<Flatten>(operation) || std::holds_alternative<Reshape>(operation);
    if (reshapes && !drafts.empty()) drafts.back().reshaped = true;
    if (!reshapes && !fuse(operation, drafts)) {
      Draft draft{operation, {}, shape, {}};
      if (std::holds_alternative<Convolution>(operation)) draft.result = image_of(next);
      if (const auto* pooling = std::get_if<MaxPooling>(&operation)) {
        draft.fused.tile = pooling->size;
      }
      if (const auto* activation = std::get_if<Activation>(&operation)) {
        draft.fused.activation = *activation;
      }
      drafts.push_back(std::move(draft));
    }
    shape = std::move(next);
  }
  if (drafts.empty()) throw NotPlanned("nothing is to be computed");
  output = std::move(shape);
  return drafts;
}

// The rows or columns that `count` windows cover.
int64_t span(int64_t count, int64_t size, int64_t stride, int64_t dilation) {
  return (count - 1) * stride + (size - 1) * dilation + 1;
}

}  // namespace

std::string why_not(const Operation& operation) {
  const auto* activation = std::get_if<Activation>(&operation);
  if (activation != nullptr && activation->alpha < 0) return "its slope is below 0";
  const auto* pooling = std::get_if<MaxPooling>(&operation);
  if (pooling == nullptr) return "";
  if (pooling->size != pooling->strides) return "windows overlap or leave gaps";
  if (pooling->same) return "windows may reach over the border";
  if (pooling->size[0] * pooling->size[1] > kMaxTileSize) return "windows are too large";
  return "";
}

// Rows and columns at the end of an image often fill no window of a later operation: to compute
// them is to throw them away.
std::vector<std::unique_ptr<Unit>> make_units(const Request& request, Shape& output) {
  std::vector<Draft> drafts = draft_units(request.operations, request.input, output);
  const auto convolution = [&](size_t i) {
    return i < drafts.size() ? std::get_if<Convolution>(&drafts[i].operation) : nullptr;
  };
  std::vector<Image> reads(drafts.size());
  for (size_t i = drafts.size(); i-- > 0;) {
    const Convolution* const o = convolution(i);
    if (o == nullptr) continue;
    Draft& draft = drafts[i];
    reads[i] = image_of(draft.in);
    if (o->same) continue;
    const Size& tile = draft.fused.tile;
    Image wanted = draft.result;
    wanted.height /= tile[0];
    wanted.width /= tile[1];
    if (convolution(i + 1) != nullptr && !draft.reshaped) {
      wanted.height = reads[i + 1].height;
      wanted.width = reads[i + 1].width;
    }
    draft.result.height = wanted.height * tile[0];
    draft.result.width = wanted.width * tile[1];
    reads[i].height = span(draft.result.height, o->size[0], o->strides[0], o->dilation[0]);
    reads[i].width = span(draft.result.width, o->size[1], o->strides[1], o->dilation[1]);
  }

  std::vector<std::unique_ptr<Unit>> units;
  for (size_t i = 0; i < drafts.size(); ++i) {
    const Draft& draft = drafts[i];
    if (const Convolution* const o = convolution(i)) {
      Image image = image_of(draft.in);
      const Convolution* const before = i > 0 ? convolution(i - 1) : nullptr;
      if (before != nullptr && !before->same && !drafts[i - 1].reshaped) image = reads[i];
      const bool wants_input = i > 0 || (request.records && request.wants_input);
      std::unique_ptr<Unit> unit =
          wants_input ? nullptr : make_single_channel(*o, draft.fused, image, draft.result);
      if (unit == nullptr) {
        unit = make_convolution(*o, draft.fused, image, reads[i], draft.result);
      }
      units.push_back(std::move(unit));
    } else if (const auto* dense = std::get_if<Dense>(&draft.operation)) {
      units.push_back(make_dense(*dense, draft.fused, draft.in[1]));
    } else if (std::holds_alternative<MaxPooling>(draft.operation)) {
      units.push_back(make_pooling(draft.fused, image_of(draft.in)));
    } else if (const auto* average = std::get_if<AveragePooling>(&draft.operation)) {
      units.push_back(make_average(*average, image_of(draft.in)));
    } else if (std::holds_alternative<GlobalAverage>(draft.operation)) {
      units.push_back(make_global_average(image_of(draft.in)));
    } else if (const auto* recurrent = std::get_if<Recurrent>(&draft.operation)) {
      units.push_back(make_recurrent(*recurrent, draft.in[1], draft.in[2]));
    } else if (const auto* normalization = std::get_if<Normalization>(&draft.operation)) {
      units.push_back(make_normalization(*normalization, example_size(draft.in), draft.in.back()));
    } else if (const auto* dropout = std::get_if<Dropout>(&draft.operation)) {
      units.push_back(make_dropout(*dropout, example_size(draft.in)));
    } else {
      units.push_back(make_activation(*draft.fused.activation, example_size(draft.in)));
    }
  }
  return units;
}

}  // namespace cohort::internal::plan
