#include "cohort/data/storage/element_codec.h"

#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "cohort/core/bytes/varint.h"
#include "cohort/core/structure/contiguous_elements.h"

static_assert(std::endian::native == std::endian::little, "files hold little-endian numbers");

namespace cohort::internal {
namespace {

enum Kind : uint8_t { kLeaf = 0, kTuple = 1, kDict = 2, kSparseLeaf = 3 };
constexpr uint64_t kStrings = 255;
constexpr uint64_t kMaxRank = 64;  // libtorch's own limit
constexpr int kMaxDepth = 64;
constexpr uint64_t kMaxSize = uint64_t{1} << 48;

// The dtypes of which every byte pattern is a value, and bool.
constexpr std::array kDtypes = {DType::Byte,     DType::Char,         DType::Short,
                                DType::Int,      DType::Long,         DType::Half,
                                DType::Float,    DType::Double,       DType::Bool,
                                DType::BFloat16, DType::ComplexFloat, DType::ComplexDouble};

bool is_known(DType dtype) {
  return std::find(kDtypes.begin(), kDtypes.end(), dtype) != kDtypes.end();
}

void append_shape(std::string& out, const std::vector<int64_t>& shape) {
  append_varint(out, shape.size());
  for (const int64_t size : shape) append_varint(out, static_cast<uint64_t>(size));
}

void encode_leaf(std::string& out, const Leaf& leaf);

void encode_sparse(std::string& out, const Tensor& tensor) {
  const Tensor coo = tensor.cpu().coalesce();
  out += static_cast<char>(kSparseLeaf);
  append_shape(out, coo.sizes().vec());
  encode_leaf(out, coo._indices());
  encode_leaf(out, coo._values());
}

void encode_leaf(std::string& out, const Leaf& leaf) {
  if (leaf.is_tensor() && leaf.tensor().layout() == at::kSparse) {
    return encode_sparse(out, leaf.tensor());
  }
  out += static_cast<char>(kLeaf);
  if (leaf.is_strings()) {
    const StringTensor& strings = leaf.strings();
    append_varint(out, kStrings);
    append_shape(out, strings.sizes());
    for (int64_t i = 0; i < strings.numel(); ++i) append_varint(out, strings[i].size());
    for (int64_t i = 0; i < strings.numel(); ++i) out += strings[i];
    return;
  }
  const Tensor& tensor = leaf.tensor();
  if (!is_known(tensor.scalar_type())) {
    throw UnimplementedError(str("a tensor of dtype ", dtype_name(tensor.scalar_type()),
                                 " cannot be written; convert it first"));
  }
  const Tensor values = contiguous_elements(tensor.to(c10::kCPU));
  append_varint(out, static_cast<uint64_t>(values.scalar_type()));
  append_shape(out, values.sizes().vec());
  out.append(static_cast<const char*>(values.data_ptr()), values.nbytes());
}

// No deeper than what is decoded.
void encode(std::string& out, const Structure& element, int depth = 0) {
  if (depth > kMaxDepth) {
    throw InvalidArgumentError(
        str("structures nested more than ", kMaxDepth, " deep cannot be written"));
  }
  if (element.is_leaf()) return encode_leaf(out, element.leaf());
  out += static_cast<char>(element.is_tuple() ? kTuple : kDict);
  append_varint(out, element.size());
  for (size_t i = 0; i < element.size(); ++i) {
    if (element.is_dict()) {
      const std::string& key = element.items()[i].first;
      append_varint(out, key.size());
      out += key;
    }
    encode(out, element[i], depth + 1);
  }
}

class Decoder {
 public:
  Decoder(std::string_view bytes, std::string_view what)
      : left_(bytes), size_(bytes.size()), what_(what) {}

  Structure element(int depth) {
    if (depth > kMaxDepth) fail("structures nested too deeply");
    switch (const uint64_t kind = number()) {
      case kLeaf:
        return leaf();
      case kTuple:
        return tuple(depth);
      case kDict:
        return dict(depth);
      case kSparseLeaf:
        return sparse();
      default:
        fail(str("a structure of unknown kind ", kind));
    }
  }
  void expect_end() const {
    if (!left_.empty()) fail("bytes after the end of the element");
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const {
    throw DataLossError(
        str(what_, ": at byte ", size_ - left_.size(), " of an element: ", problem));
  }
  uint64_t number() {
    try {
      return take_varint(left_);
    } catch (const DataLossError&) {
      fail("a damaged number");
    }
  }
  std::string_view bytes(uint64_t length) {
    if (length > left_.size()) {
      fail(str("a length of ", length, " with only ", left_.size(), " bytes left"));
    }
    const std::string_view value = left_.substr(0, length);
    left_.remove_prefix(length);
    return value;
  }
  // No reserve() below: a count is a claim, each member read is a fact.
  Structure tuple(int depth) {
    std::vector<Structure> members;
    for (uint64_t count = number(); count > 0; --count) members.push_back(element(depth + 1));
    return Structure::make_tuple(std::move(members));
  }
  Structure dict(int depth) {
    Structure::Dict items;
    for (uint64_t count = number(); count > 0; --count) {
      std::string key(bytes(number()));
      items.emplace_back(std::move(key), element(depth + 1));
    }
    try {
      return Structure::make_dict(std::move(items));
    } catch (const InvalidArgumentError& error) {
      fail(error.what());
    }
  }
  // `numel` is at most what fits into the bytes that are left, `bytes_each` each.
  std::vector<int64_t> shape(uint64_t bytes_each, uint64_t& numel) {
    const uint64_t rank = number();
    if (rank > kMaxRank) fail(str("a tensor of rank ", rank));
    std::vector<int64_t> shape;
    for (uint64_t d = 0; d < rank; ++d) {
      const uint64_t size = number();
      if (size > kMaxSize) fail(str("a size of ", size));
      shape.push_back(static_cast<int64_t>(size));
    }
    const bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
    // The other sizes of an empty tensor make strides, which must not overflow.
    const uint64_t limit = empty ? kMaxSize : left_.size() / bytes_each;
    uint64_t product = 1;
    for (const int64_t size : shape) {
      if (size == 0) continue;
      if (static_cast<uint64_t>(size) > limit / product) {
        fail(str("a shape of more values than the ", left_.size(), " bytes left"));
      }
      product *= static_cast<uint64_t>(size);
    }
    numel = empty ? 0 : product;
    return shape;
  }
  Tensor part_of_sparse() {
    if (number() != kLeaf) fail("a sparse tensor of something else than tensors");
    const Structure part = leaf();
    if (!part.leaf().is_tensor()) fail("a sparse tensor of strings");
    return part.tensor();
  }
  // Nothing of it is believed: an index outside of the shape would be one outside of memory.
  Structure sparse() {
    const std::vector<int64_t> sizes = shape_of_sparse();
    const Tensor indices = part_of_sparse();
    const Tensor values = part_of_sparse();
    if (indices.scalar_type() != int64 || indices.dim() != 2 || indices.size(0) == 0 ||
        indices.size(0) > std::ssize(sizes)) {
      fail("a sparse tensor whose indices have a wrong shape or dtype");
    }
    const int64_t sparse_dims = indices.size(0);
    const int64_t count = indices.size(1);
    std::vector<int64_t> expected(sizes.begin() + sparse_dims, sizes.end());
    expected.insert(expected.begin(), count);
    if (values.sizes() != at::IntArrayRef(expected)) {
      fail("a sparse tensor whose values have a wrong shape");
    }
    check_indices(indices, sizes);
    return at::_sparse_coo_tensor_unsafe(indices, values, sizes)._coalesced_(true);
  }
  // Inside of the shape, in order, each once: that of coalesced tensors, which are written.
  void check_indices(const Tensor& indices, const std::vector<int64_t>& sizes) {
    const int64_t sparse_dims = indices.size(0);
    const int64_t count = indices.size(1);
    const auto* values = indices.data_ptr<int64_t>();
    for (int64_t i = 0; i < count; ++i) {
      bool after_last = i == 0;
      for (int64_t d = 0; d < sparse_dims; ++d) {
        const int64_t index = values[d * count + i];
        if (index < 0 || index >= sizes[static_cast<size_t>(d)]) {
          fail(str("an index ", index, " in a sparse tensor of shape ", shape_str(sizes)));
        }
        if (after_last) continue;
        const int64_t last = values[d * count + i - 1];
        if (index < last) break;
        after_last = index > last;
      }
      if (!after_last) fail("indices of a sparse tensor that are not in order");
    }
  }
  // Sizes whose product int64 can count.
  std::vector<int64_t> shape_of_sparse() {
    const uint64_t rank = number();
    if (rank == 0 || rank > kMaxRank) fail(str("a sparse tensor of rank ", rank));
    std::vector<int64_t> sizes;
    int64_t numel = 1;
    for (uint64_t d = 0; d < rank; ++d) {
      const uint64_t size = number();
      if (size > kMaxSize ||
          __builtin_mul_overflow(numel, std::max<int64_t>(1, static_cast<int64_t>(size)), &numel)) {
        fail(str("a size of ", size));
      }
      sizes.push_back(static_cast<int64_t>(size));
    }
    return sizes;
  }
  Structure leaf() {
    const uint64_t type = number();
    uint64_t numel = 0;
    if (type == kStrings) {
      const std::vector<int64_t> sizes = shape(1, numel);
      std::vector<uint64_t> lengths;
      for (uint64_t i = 0; i < numel; ++i) lengths.push_back(number());
      std::vector<std::string> values;
      for (const uint64_t length : lengths) values.emplace_back(bytes(length));
      return StringTensor(values, sizes);
    }
    const auto dtype = static_cast<DType>(type);
    if (type > 127 || !is_known(dtype)) fail(str("an unknown dtype ", type));
    const uint64_t item_bytes = c10::elementSize(dtype);
    const std::vector<int64_t> sizes = shape(item_bytes, numel);
    const std::string_view values = bytes(numel * item_bytes);
    if (dtype == DType::Bool &&
        std::any_of(values.begin(), values.end(), [](char c) { return c != 0 && c != 1; })) {
      fail("a bool that is neither 0 nor 1");
    }
    Tensor tensor = at::empty(sizes, dtype);
    if (!values.empty()) std::memcpy(tensor.data_ptr(), values.data(), values.size());
    return tensor;
  }

  std::string_view left_;
  const size_t size_;
  const std::string_view what_;
};

}  // namespace

std::string encode_element(const Structure& element) {
  std::string out;
  encode(out, element);
  return out;
}

Structure decode_element(std::string_view bytes, std::string_view what) {
  Decoder decoder(bytes, what);
  Structure element = decoder.element(0);
  decoder.expect_end();
  return element;
}

Structure spec_to_structure(const StructureSpec& spec) {
  return spec.make_structure([](const TensorSpec& leaf) -> Leaf {
    std::vector<int64_t> numbers = {leaf.is_string() ? -1 : static_cast<int64_t>(leaf.dtype()),
                                    leaf.shape().has_value()};
    if (leaf.shape()) numbers.insert(numbers.end(), leaf.shape()->begin(), leaf.shape()->end());
    Tensor tensor = at::empty({static_cast<int64_t>(numbers.size())}, int64);
    std::copy(numbers.begin(), numbers.end(), tensor.data_ptr<int64_t>());
    return tensor;
  });
}

StructureSpec structure_to_spec(const Structure& structure) {
  return StructureSpec::of(structure).map(
      [leaves = structure.flatten(), i = size_t{0}](const TensorSpec&) mutable {
        const Tensor numbers = leaves[i++].tensor();
        if (numbers.dim() != 1 || numbers.size(0) < 2 || numbers.scalar_type() != int64) {
          throw InvalidArgumentError("not the numbers of a spec");
        }
        const auto* values = numbers.data_ptr<int64_t>();
        std::optional<std::vector<int64_t>> shape;
        if (values[1] == 1) shape.emplace(values + 2, values + numbers.size(0));
        if (values[0] == -1) return TensorSpec::strings(shape);
        const auto dtype = static_cast<DType>(values[0]);
        if (values[0] < 0 || values[0] > 127 || !is_known(dtype)) {
          throw InvalidArgumentError(str("a spec of unknown dtype ", values[0]));
        }
        return TensorSpec(shape, dtype);
      });
}

}  // namespace cohort::internal
