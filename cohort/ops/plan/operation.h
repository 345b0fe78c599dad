// What layers say of themselves to whoever plans them: operations, free of any library's terms.
//
// An operation takes one tensor and its parameters, and gives one. Images are
// [batch, height, width, channels], rows [batch, features], sequences [batch, steps, features].
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "cohort/core/structure/tensor.h"

namespace cohort::internal::plan {

enum class Cell { kLstm, kGru };

// f(x):
enum class Function {
  kRelu,       // max(0, x)
  kRelu6,      // min(max(0, x), 6)
  kLeakyRelu,  // x above 0, else alpha x
  kElu,        // x above 0, else alpha (e^x - 1)
  kSelu,       // 1.0507 times that with alpha 1.67326 (Klambauer et al., 2017)
  kTanh,
  kSigmoid,   // 1 / (1 + e^-x)
  kSoftplus,  // log(1 + e^x)
  kGelu,      // x (1 + erf(x / sqrt 2)) / 2
  kSwish      // x sigmoid(x)
};

using Size = std::array<int64_t, 2>;  // height, width

// Parameters: kernel [size, size, channels, filters], then, with `bias`, bias [filters].
struct Convolution {
  int64_t filters = 1;
  Size size{1, 1};
  Size strides{1, 1};
  Size dilation{1, 1};
  bool same = false;  // zeros around the image, the odd one below and to the right
  bool bias = true;
};
// The largest of each window of an image. No parameters.
struct MaxPooling {
  Size size{2, 2};
  Size strides{2, 2};
  bool same = false;
};
// The mean of each window of an image; at its border, of those pixels that are there. No
// parameters.
struct AveragePooling {
  Size size{2, 2};
  Size strides{2, 2};
  bool same = false;
};
// The mean of each channel of an image: [batch, channels], or with `keeps_axes` [batch, 1, 1,
// channels].
struct GlobalAverage {
  bool keeps_axes = false;
};
// Rows times kernel [features, units], then, with `bias`, plus bias [units].
struct Dense {
  int64_t units = 1;
  bool bias = true;
};
// A function of each element. No parameters.
struct Activation {
  Function function = Function::kRelu;
  double alpha = 1;  // of leaky relu and elu; not below 0
};
inline constexpr Activation kRelu{};
// Each element times that of its parameter, over 1 - rate. Parameters: what is kept, 1 or 0 for
// each element of the input, in its shape; whoever runs the plan draws it anew for each pass.
struct Dropout {
  double rate = 0.5;  // from 0 to below 1
};
// Normalizes each channel, the last axis: (x - mean) / sqrt(variance + epsilon) * gamma + beta.
// Parameters, each [channels]: with `scale` gamma, with `center` beta; unless `by_batch`, mean and
// variance. If `by_batch`, these are of the whole batch, the variance biased (Ioffe and Szegedy,
// 2015).
struct Normalization {
  double epsilon = 1e-3;
  bool scale = true;
  bool center = true;
  bool by_batch = true;
};
// One row for each example.
struct Flatten {};
// Each example in another shape, of which one size may be -1: what is left for it.
struct Reshape {
  std::vector<int64_t> example;
};
// An LSTM or GRU over sequences, from a state of zeros. Gates are sigmoid's, candidates tanh's; a
// GRU's reset gate acts after the product (Keras' reset_after). Gives the last state [batch,
// units], or with `sequences` that of each step, in the order in which they are taken. Parameters:
// kernel [features, columns], recurrent kernel [units, columns], then, with `bias`, bias [columns],
// of a GRU [2, columns]. Columns are an LSTM's gates for input, forgetting, candidate and output,
// `units` each; or a GRU's for update, reset and candidate.
struct Recurrent {
  Cell cell = Cell::kLstm;
  int64_t units = 1;
  bool bias = true;
  bool sequences = false;
  bool backwards = false;  // from the last step to the first

  int64_t columns() const { return (cell == Cell::kLstm ? 4 : 3) * units; }
};

using Operation = std::variant<Convolution, MaxPooling, AveragePooling, GlobalAverage, Dense,
                               Activation, Dropout, Normalization, Flatten, Reshape, Recurrent>;

using Shape = std::vector<int64_t>;  // of a tensor, batch first

size_t num_parameters(const Operation& operation);
// "3x3 convolution", for texts.
std::string describe(const Operation& operation);
// The shape of the result; empty where the operation cannot take such an input (rank, or an image
// smaller than a window).
Shape result_shape(const Operation& operation, const Shape& input);
// The shapes of the parameters for such an input.
std::vector<Shape> parameter_shapes(const Operation& operation, const Shape& input);

// Windows on an axis of `length`: how many there are (0: none fits), and what they leave out of it
// or need around it.
struct Windows {
  int64_t count = 0;
  int64_t before = 0;  // zeros ahead of the first pixel
  int64_t after = 0;
};
Windows windows(int64_t length, int64_t size, int64_t stride, int64_t dilation, bool same);

// Whether windows are of one pixel, with gaps between them. oneDNN 2.6's kernels for those copy
// pixels by whole vectors of channels, beyond the end of their memory where vectors do not divide
// the channels; so the pixels are taken out first, and convolved without gaps.
bool has_gaps(const Size& size, const Size& strides);
// The pixels that such windows see.
// Shapes: [batch, channels, height, width] -> the same, with fewer rows and columns; a view.
Tensor seen_pixels(const Tensor& images, const Size& strides);

// The operations one after the other, in libtorch's terms: what a plan must give, and what computes
// gradients of its gradients. `parameters`: those of all operations, in order. Differentiable, any
// number of times.
Tensor evaluate(const std::vector<Operation>& operations, const Tensor& input,
                const std::vector<Tensor>& parameters);

}  // namespace cohort::internal::plan
