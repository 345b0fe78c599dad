#include <cohort/core/error.h>
#include <cohort/image/color.h>
#include <cohort/image/crop.h>
#include <cohort/image/decode.h>
#include <cohort/image/encode.h>
#include <cohort/image/flip.h>
#include <cohort/image/jpeg_quality.h>
#include <cohort/image/random_image.h>
#include <cohort/image/resize.h>
#include <cohort/image/transform.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "hex.h"
#include "probe.h"
#include "tensor_json.h"

namespace cohort::interop {
namespace {

// What an operation is called with.
struct Call {
  std::vector<Tensor> inputs = {};
  Json options = {};
  std::string contents = {};

  const Tensor& images() const { return inputs.at(0); }
  template <class T>
  T get(const char* name) const {
    return options.at(name).get<T>();
  }
  template <class T>
  T get(const char* name, T otherwise) const {
    return options.value(name, otherwise);
  }
  std::vector<int64_t> size() const { return get<std::vector<int64_t>>("size"); }
};

using Operations = std::map<std::string, std::function<Tensor(const Call&)>>;

Tensor boxed(const Call& call,
             Tensor (*operation)(const Tensor&, int64_t, int64_t, int64_t, int64_t)) {
  const auto box = call.get<std::vector<int64_t>>("box");
  return operation(call.images(), box.at(0), box.at(1), box.at(2), box.at(3));
}

image::ResizeOptions resize_options(const Call& call) {
  return {.method = call.get<std::string>("method", "bilinear"),
          .preserve_aspect_ratio = call.get<bool>("preserve_aspect_ratio", false),
          .antialias = call.get<bool>("antialias", false)};
}

const Operations kGeometry = {
    {"resize",
     [](const Call& c) { return image::resize(c.images(), c.size(), resize_options(c)); }},
    {"resize_with_pad",
     [](const Call& c) {
       const image::ResizeOptions options = resize_options(c);
       return image::resize_with_pad(c.images(), c.size().at(0), c.size().at(1),
                                     {.method = options.method, .antialias = options.antialias});
     }},
    {"crop_and_resize",
     [](const Call& c) {
       return image::crop_and_resize(c.images(), c.inputs.at(1), c.inputs.at(2), c.size(),
                                     {.method = c.get<std::string>("method"),
                                      .extrapolation_value = c.get<double>("outside")});
     }},
    {"crop_to_bounding_box", [](const Call& c) { return boxed(c, image::crop_to_bounding_box); }},
    {"pad_to_bounding_box", [](const Call& c) { return boxed(c, image::pad_to_bounding_box); }},
    {"resize_with_crop_or_pad",
     [](const Call& c) {
       return image::resize_with_crop_or_pad(c.images(), c.size().at(0), c.size().at(1));
     }},
    {"central_crop",
     [](const Call& c) { return image::central_crop(c.images(), c.get<double>("fraction")); }},
    {"flip_left_right", [](const Call& c) { return image::flip_left_right(c.images()); }},
    {"flip_up_down", [](const Call& c) { return image::flip_up_down(c.images()); }},
    {"rot90", [](const Call& c) { return image::rot90(c.images(), c.get<int64_t>("k")); }},
    {"transpose", [](const Call& c) { return image::transpose(c.images()); }},
    {"projective_transform",
     [](const Call& c) {
       return image::projective_transform(
           c.images(), c.inputs.at(1),
           {.fill_mode = c.get<std::string>("fill_mode"),
            .fill_value = c.get<double>("fill_value"),
            .interpolation = c.get<std::string>("interpolation"),
            .output_shape = c.get("output_shape", std::vector<int64_t>())});
     }},
};

DType dtype_of(const std::string& name) {
  if (name == "int8") return at::kChar;
  if (name == "int16") return at::kShort;
  if (name == "float16") return at::kHalf;
  return tensor_of({{"dtype", name}, {"shape", {0}}, {"values", Json::array()}}).scalar_type();
}

image::Seed seed_of(const Call& call) {
  const auto seed = call.get<std::vector<int64_t>>("seed");
  return {seed.at(0), seed.at(1)};
}

const Operations kColors = {
    {"convert_image_dtype",
     [](const Call& c) {
       const Tensor images = c.images().to(dtype_of(c.get<std::string>("from")));
       return image::convert_image_dtype(images, dtype_of(c.get<std::string>("dtype")),
                                         c.get<bool>("saturate"));
     }},
    {"adjust_brightness",
     [](const Call& c) { return image::adjust_brightness(c.images(), c.get<double>("by")); }},
    {"adjust_contrast",
     [](const Call& c) { return image::adjust_contrast(c.images(), c.get<double>("by")); }},
    {"adjust_gamma",
     [](const Call& c) {
       return image::adjust_gamma(c.images(), c.get<double>("by"), c.get<double>("gain"));
     }},
    {"adjust_hue",
     [](const Call& c) { return image::adjust_hue(c.images(), c.get<double>("by")); }},
    {"adjust_saturation",
     [](const Call& c) { return image::adjust_saturation(c.images(), c.get<double>("by")); }},
    {"adjust_jpeg_quality",
     [](const Call& c) { return image::adjust_jpeg_quality(c.images(), c.get<int64_t>("by")); }},
    {"rgb_to_grayscale", [](const Call& c) { return image::rgb_to_grayscale(c.images()); }},
    {"grayscale_to_rgb", [](const Call& c) { return image::grayscale_to_rgb(c.images()); }},
    {"rgb_to_hsv", [](const Call& c) { return image::rgb_to_hsv(c.images()); }},
    {"hsv_to_rgb", [](const Call& c) { return image::hsv_to_rgb(c.images()); }},
    {"per_image_standardization",
     [](const Call& c) { return image::per_image_standardization(c.images()); }},
    {"stateless_random_flip_left_right",
     [](const Call& c) { return image::stateless_random_flip_left_right(c.images(), seed_of(c)); }},
    {"stateless_random_flip_up_down",
     [](const Call& c) { return image::stateless_random_flip_up_down(c.images(), seed_of(c)); }},
    {"stateless_random_crop",
     [](const Call& c) { return image::stateless_random_crop(c.images(), c.size(), seed_of(c)); }},
    {"stateless_random_brightness",
     [](const Call& c) {
       return image::stateless_random_brightness(c.images(), c.get<double>("most"), seed_of(c));
     }},
    {"stateless_random_hue",
     [](const Call& c) {
       return image::stateless_random_hue(c.images(), c.get<double>("most"), seed_of(c));
     }},
    {"stateless_random_contrast",
     [](const Call& c) {
       return image::stateless_random_contrast(c.images(), c.get<double>("least"),
                                               c.get<double>("most"), seed_of(c));
     }},
    {"stateless_random_saturation",
     [](const Call& c) {
       return image::stateless_random_saturation(c.images(), c.get<double>("least"),
                                                 c.get<double>("most"), seed_of(c));
     }},
};

io::DecodeJpegOptions jpeg_options(const Call& call) {
  return {.channels = call.get<int64_t>("channels", 0),
          .ratio = call.get<int64_t>("ratio", 1),
          .fancy_upscaling = call.get<bool>("fancy_upscaling", true),
          .try_recover_truncated = call.get<bool>("try_recover_truncated", false),
          .acceptable_fraction = call.get<double>("acceptable_fraction", 1),
          .dct_method = call.get<std::string>("dct_method", "")};
}

const Operations kDecoding = {
    {"decode_jpeg", [](const Call& c) { return io::decode_jpeg(c.contents, jpeg_options(c)); }},
    {"decode_and_crop_jpeg",
     [](const Call& c) {
       const auto box = c.get<std::vector<int64_t>>("window");
       return io::decode_and_crop_jpeg(c.contents, {box.at(0), box.at(1), box.at(2), box.at(3)},
                                       jpeg_options(c));
     }},
    {"extract_jpeg_shape", [](const Call& c) { return io::extract_jpeg_shape(c.contents); }},
    {"decode_png",
     [](const Call& c) {
       return io::decode_png(c.contents, {.channels = c.get<int64_t>("channels", 0),
                                          .dtype = dtype_of(c.get<std::string>("dtype", "uint8"))});
     }},
    {"decode_image",
     [](const Call& c) {
       return io::decode_image(c.contents,
                               {.channels = c.get<int64_t>("channels", 0),
                                .dtype = dtype_of(c.get<std::string>("dtype", "uint8"))});
     }},
};

std::string encode(const std::string& op, const Call& call) {
  if (op == "encode_png") {
    return io::encode_png(call.images(), {.compression = call.get<int64_t>("compression", -1)});
  }
  return io::encode_jpeg(call.images(),
                         {.format = call.get<std::string>("format", ""),
                          .quality = call.get<int64_t>("quality", 95),
                          .progressive = call.get<bool>("progressive", false),
                          .optimize_size = call.get<bool>("optimize_size", false),
                          .chroma_downsampling = call.get<bool>("chroma_downsampling", true),
                          .density_unit = call.get<std::string>("density_unit", "in"),
                          .x_density = call.get<int64_t>("x_density", 300),
                          .y_density = call.get<int64_t>("y_density", 300),
                          .xmp_metadata = call.get<std::string>("xmp_metadata", "")});
}

const std::function<Tensor(const Call&)>& operation_of(const std::string& op) {
  for (const Operations* operations : {&kGeometry, &kColors, &kDecoding}) {
    const auto found = operations->find(op);
    if (found != operations->end()) return found->second;
  }
  throw InvalidArgumentError("the probe has no operation " + op);
}

// Differentiates the sum of the result times its own indices by the images, for "gradient".
Json with_gradient(const std::function<Tensor(const Call&)>& operation, Call call) {
  Tensor images = call.inputs.at(0).clone().set_requires_grad(true);
  call.inputs[0] = images;
  const Tensor result = operation(call);
  Tensor weights = result.detach().clone();
  for (int64_t i = 0; i < weights.numel(); ++i) weights.view({-1})[i] = (i % 7) - 3.0;
  (result * weights).sum().backward();
  Json answer = json_of(result);
  answer["gradient"] = json_of(images.grad());
  return answer;
}

}  // namespace

Json use_images(const Json& request) {
  try {
    Call call{.options = request.value("options", Json::object()),
              .contents = bytes_of(request.value("contents", std::string()))};
    for (const Json& input : request.value("inputs", Json::array())) {
      call.inputs.push_back(tensor_of(input));
    }
    const auto op = request.at("op").get<std::string>();
    if (op.starts_with("encode_")) return {{"contents", hex_of(encode(op, call))}};
    if (op == "is_jpeg") return {{"value", io::is_jpeg(call.contents)}};
    const auto& operation = operation_of(op);
    if (request.value("gradient", false)) return with_gradient(operation, std::move(call));
    return json_of(operation(call));
  } catch (const Error& error) {
    return {{"error", code_name(error.code())}, {"text", error.what()}};
  }
}

}  // namespace cohort::interop
