// Convolutions of images [examples, height, width, channels], with the bias, activation and pooling
// that follow.
#include "cohort/ops/plan/convolution.h"

#include "cohort/core/error.h"

namespace cohort::internal::plan {

DescribedConvolution describe_for(const SharedByConvolutions& s, int64_t count,
                                  const DescribedConvolution* like) {
  const Convolution& o = s.operation;
  const auto images = [&](const Image& image) {
    return Layout({count, image.channels, image.height, image.width}, kFloat, Tag::nhwc);
  };
  const Layout any({o.filters, s.image.channels, o.size[0], o.size[1]}, kFloat, Tag::any);
  const Layout bias({o.filters}, kFloat, Tag::x);
  const dnnl::memory::dims strides{o.strides[0], o.strides[1]};
  const dnnl::memory::dims dilation{o.dilation[0] - 1, o.dilation[1] - 1};
  const Windows rows = windows(s.read.height, o.size[0], o.strides[0], o.dilation[0], o.same);
  const Windows columns = windows(s.read.width, o.size[1], o.strides[1], o.dilation[1], o.same);
  const dnnl::memory::dims before{rows.before, columns.before};
  const dnnl::memory::dims after{rows.after, columns.after};
  const Layout from = images(s.read);
  const Layout to = images(s.result);

  DescribedConvolution made;
  made.count = count;
  constexpr auto kKind = dnnl::prop_kind::forward_training;
  constexpr auto kDirect = dnnl::algorithm::convolution_direct;
  using Forward = dnnl::convolution_forward;
  const Layout kernel = like != nullptr ? like->forward.weights_desc() : any;
  made.forward = s.adds_bias() ? describe<Forward>(kKind, kDirect, from, kernel, bias, to, strides,
                                                   dilation, before, after)
                               : describe<Forward>(kKind, kDirect, from, kernel, to, strides,
                                                   dilation, before, after);
  check_is_fast(made.forward, "convolution");
  if (!s.records || s.has_pooled_gradients()) return made;
  made.weights = describe_gradient<dnnl::convolution_backward_weights>(
      made.forward, kDirect, from, like != nullptr ? like->weights.diff_weights_desc() : any, to,
      strides, dilation, before, after);
  check_is_fast(made.weights, "gradient of a convolution's kernel");
  if (!s.wants_input) return made;
  made.data = describe_gradient<dnnl::convolution_backward_data>(
      made.forward, kDirect, from, like != nullptr ? like->data.weights_desc() : any, to, strides,
      dilation, before, after);
  check_is_fast(made.data, "gradient of a convolution's input");
  return made;
}

namespace {

class ConvolutionUnit final : public Unit {
 public:
  ConvolutionUnit(const Convolution& operation, const Fused& fused, const Image& image,
                  const Image& read, const Image& result) {
    s_.operation = operation;
    s_.fused = fused;
    s_.image = image;
    s_.read = read;
    s_.result = result;
    if (!has_gaps(operation.size, operation.strides)) return;
    s_.gaps = operation.strides;
    s_.operation.strides = {1, 1};
    s_.read = {result.height, result.width, image.channels};
  }

  int64_t in_size() const override { return s_.image.size(); }
  int64_t out_size() const override {
    return s_.fused.pools() ? s_.pooled().size() : s_.result.size();
  }
  size_t num_parameters() const override { return plan::num_parameters(s_.operation); }
  int64_t work() const override {
    return s_.result.size() * s_.operation.size[0] * s_.operation.size[1] * s_.image.channels;
  }
  int64_t widest() const override { return std::max(s_.read.size(), s_.result.size()); }
  bool reads_output() const override { return s_.fused.activation && !s_.fused.pools(); }
  std::string describe() const override {
    std::string text = plan::describe(Operation(s_.operation));
    if (s_.operation.bias) text += " + bias";
    text += s_.fused.describe_activation();
    if (s_.fused.pools()) {
      text += str(" + ", s_.fused.tile[0], "x", s_.fused.tile[1], " max-pooling");
    }
    if (!s_.crop().keeps_all()) {
      text += str(", of ", s_.read.height, " x ", s_.read.width, " of ", s_.image.height, " x ",
                  s_.image.width, " pixels");
    }
    return s_.has_fewer_products() ? text + ", by Winograd's F(2x2, 3x3)" : text;
  }

  void prepare(const Chunks& chunks, bool records, bool wants_input) override {
    s_.chunks = chunks;
    s_.records = records;
    s_.wants_input = records && wants_input;
    if (s_.has_fewer_products()) return;
    for_one_thread([&] {
      for (const int64_t count : chunks.sizes) {
        const DescribedConvolution* const like = s_.described.empty() ? nullptr : &s_.described[0];
        s_.described.push_back(describe_for(s_, count, like));
      }
    });
  }
  std::unique_ptr<Forward> make_forward() const override {
    return std::make_unique<ConvolutionForward>(s_);
  }
  std::unique_ptr<Backward> make_backward() const override {
    return s_.has_pooled_gradients() ? make_pooled_gradients(s_) : make_dense_gradients(s_);
  }

 private:
  SharedByConvolutions s_;
};

}  // namespace

std::unique_ptr<Unit> make_convolution(const Convolution& operation, const Fused& fused,
                                       const Image& image, const Image& read, const Image& result) {
  return std::make_unique<ConvolutionUnit>(operation, fused, image, read, result);
}

}  // namespace cohort::internal::plan
