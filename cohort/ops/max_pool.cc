#include "cohort/ops/max_pool.h"

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "cohort/core/cpu/intra_op_parallel.h"
#include "cohort/ops/kernels/max_pool_kernels.h"

namespace cohort::internal {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

TiledImages geometry(at::IntArrayRef sizes, Tile tile) {
  return {sizes[0], sizes[1], sizes[2], sizes[3], tile.height, tile.width};
}

// Calls body(first row, last row) for slices of the output's rows, on several threads where there
// is enough to do.
template <class Body>
void for_slices(const TiledImages& images, const Body& body) {
  constexpr int64_t kElements = 32768;
  const int64_t row = std::max<int64_t>(images.tile_height * images.width * images.channels, 1);
  intra_op_parallel_for(0, images.out_rows(), std::max<int64_t>(kElements / row, 1), body);
}

// Calls function(float{}) or function(double{}).
template <class Function>
void dispatch(const Tensor& values, const Function& function) {
  if (values.scalar_type() == float32) {
    function(float{});
  } else {
    function(double{});
  }
}

// What the gradient remembers of a forward pass.
struct Places {
  Tensor places;  // uint8, the output's shape
  TiledImages images;

  at::IntArrayRef out_sizes() const { return places.sizes(); }
};

Tensor unpool(const Tensor& gradient, const Places& where) {
  const Tensor values = gradient.contiguous();
  const TiledImages& images = where.images;
  Tensor image =
      at::empty({images.batch, images.height, images.width, images.channels}, values.options());
  dispatch(values, [&](auto zero) {
    using T = decltype(zero);
    for_slices(images, [&](int64_t first, int64_t last) {
      unpool_rows<T>(images, first, last, values.data_ptr<T>(), where.places.data_ptr<uint8_t>(),
                     image.data_ptr<T>());
    });
  });
  return image;
}

Tensor pick(const Tensor& image, const Places& where) {
  const Tensor from = image.contiguous();
  Tensor values = at::empty(where.out_sizes(), from.options());
  dispatch(from, [&](auto zero) {
    using T = decltype(zero);
    for_slices(where.images, [&](int64_t first, int64_t last) {
      pick_rows<T>(where.images, first, last, from.data_ptr<T>(), where.places.data_ptr<uint8_t>(),
                   values.data_ptr<T>());
    });
  });
  return values;
}

constexpr char kSize[] = "size";
constexpr char kTile[] = "tile";

// Two numbers in one: a list among the saved data takes memory at every step.
int64_t pack(int64_t high, int64_t low) { return high << 32 | low; }
int64_t high_of(int64_t both) { return both >> 32; }
int64_t low_of(int64_t both) { return both & 0xffffffff; }

void remember(AutogradContext& context, const Places& where) {
  const TiledImages& images = where.images;
  context.save_for_backward({where.places});
  context.saved_data[kSize] = pack(images.height, images.width);
  context.saved_data[kTile] = pack(images.tile_height, images.tile_width);
}

Places remembered(const AutogradContext& context) {
  const Tensor places = context.get_saved_variables()[0];
  const int64_t size = context.saved_data.at(kSize).toInt();
  const int64_t tile = context.saved_data.at(kTile).toInt();
  return {
      places,
      {places.size(0), high_of(size), low_of(size), places.size(3), high_of(tile), low_of(tile)}};
}

// The gradient of pooling and the gradient of that are each other's transpose.
struct Pick;
struct Unpool : Function<Unpool> {
  static Tensor forward(AutogradContext* context, const Tensor& gradient, const Places& where) {
    remember(*context, where);
    return unpool(gradient, where);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients);
};
struct Pick : Function<Pick> {
  static Tensor forward(AutogradContext* context, const Tensor& image, const Places& where) {
    remember(*context, where);
    return pick(image, where);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return {Unpool::apply(gradients[0], remembered(*context)), Tensor()};
  }
};
variable_list Unpool::backward(AutogradContext* context, variable_list gradients) {
  return {Pick::apply(gradients[0], remembered(*context)), Tensor()};
}

struct MaxPool : Function<MaxPool> {
  static Tensor forward(AutogradContext* context, const Tensor& images, Tile tile) {
    const Tensor in = images.contiguous();
    Places where{{}, geometry(in.sizes(), tile)};
    const TiledImages& sizes = where.images;
    Tensor out = at::empty({sizes.batch, sizes.out_height(), sizes.out_width(), sizes.channels},
                           in.options());
    where.places = at::empty(out.sizes(), in.options().dtype(at::kByte));
    dispatch(in, [&](auto zero) {
      using T = decltype(zero);
      for_slices(sizes, [&](int64_t first, int64_t last) {
        max_pool_rows<T>(sizes, first, last, /*bias=*/nullptr, /*relu=*/false, in.data_ptr<T>(),
                         out.data_ptr<T>(), where.places.data_ptr<uint8_t>());
      });
    });
    remember(*context, where);
    return out;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return {Unpool::apply(gradients[0], remembered(*context)), Tensor()};
  }
};

}  // namespace

bool can_max_pool_tiles(const Tensor& images, Tile tile) {
  return images.dim() == 4 && images.is_cpu() &&
         (images.scalar_type() == float32 || images.scalar_type() == float64) &&
         images.layout() == at::kStrided && tile.height <= images.size(1) &&
         tile.width <= images.size(2) && tile.height * tile.width <= kMaxTileSize;
}

Tensor max_pool_tiles(const Tensor& images, Tile tile) { return MaxPool::apply(images, tile); }

}  // namespace cohort::internal
