#include "cohort/distribute/tasks/structure_message.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/cluster/rpc/tensor_header.h"
#include "cohort/core/bytes/wire.h"
#include "cohort/core/error.h"
#include "cohort/core/structure/contiguous_elements.h"
#include "cohort/data/storage/element_codec.h"

namespace cohort::internal {
namespace {

using rpc::ElementType;

// A node: one of `tensor` and `strings`, whose bytes are the next bulk, or `kind` and its members;
// each key of a dict stands before its member.
enum Field : uint32_t { kTensor = 1, kStrings = 2, kKind = 3, kKey = 4, kMember = 5 };
constexpr uint64_t kTuple = 0;
constexpr uint64_t kDict = 1;
constexpr int kDeepest = 64;

constexpr std::pair<DType, ElementType> kTypes[] = {
    {at::kFloat, ElementType::kFloat32},
    {at::kDouble, ElementType::kFloat64},
    {at::kInt, ElementType::kInt32},
    {at::kByte, ElementType::kUInt8},
    {at::kShort, ElementType::kInt16},
    {at::kChar, ElementType::kInt8},
    {at::kComplexFloat, ElementType::kComplex64},
    {at::kLong, ElementType::kInt64},
    {at::kBool, ElementType::kBool},
    {at::kBFloat16, ElementType::kBFloat16},
    {at::kComplexDouble, ElementType::kComplex128},
    {at::kHalf, ElementType::kFloat16},
};

// Nothing: values of this dtype cannot be sent.
std::optional<ElementType> type_of(const Tensor& tensor) {
  for (const auto& [dtype, type] : kTypes) {
    if (dtype == tensor.scalar_type()) return type;
  }
  return std::nullopt;
}

void check_sendable(const Tensor& tensor, const std::string& what) {
  if (!tensor.defined()) {
    throw InvalidArgumentError(what +
                               " is an undefined tensor, which cannot be sent; give it a value");
  }
  if (tensor.layout() != at::kStrided) {
    throw UnimplementedError(
        what + " is a sparse tensor, which cannot be sent; send its indices and values");
  }
  if (type_of(tensor)) return;
  throw UnimplementedError(
      str(what, " has dtype ", dtype_name(tensor.scalar_type()), ", which cannot be sent"));
}

class Writer {
 public:
  explicit Writer(rpc::Message& message) : message_(message) {}

  std::string tuple(const std::vector<Tensor>& tensors) {
    WireWriter out;
    out.varint(kKind, kTuple);
    message_.bulk.reserve(tensors.size());
    for (size_t i = 0; i < tensors.size(); ++i) {
      WireWriter member;
      tensor(tensors[i], str("value [", i, ']'), member);
      out.bytes(kMember, std::move(member).str());
    }
    return std::move(out).str();
  }

  // Writes no deeper trees than can be read.
  std::string node(const Structure& structure, const std::string& path, int depth = 0) {
    if (depth > kDeepest) {
      throw InvalidArgumentError(
          str("structures nested more than ", kDeepest, " deep cannot be sent"));
    }
    WireWriter out;
    if (structure.is_leaf()) {
      leaf(structure.leaf(), path, out);
    } else if (structure.is_tuple()) {
      out.varint(kKind, kTuple);
      for (size_t i = 0; i < structure.size(); ++i) {
        out.bytes(kMember, node(structure[i], str(path, '[', i, ']'), depth + 1));
      }
    } else {
      out.varint(kKind, kDict);
      for (const auto& [key, member] : structure.items()) {
        out.bytes(kKey, key);
        out.bytes(kMember, node(member, str(path, "['", key, "']"), depth + 1));
      }
    }
    return out.str();
  }

 private:
  void leaf(const Leaf& leaf, const std::string& path, WireWriter& out) {
    const std::string what = path.empty() ? "the value" : str("value ", path);
    if (leaf.is_strings()) {
      out.bytes(kStrings, "");
      auto bytes = std::make_shared<std::string>(encode_element(Structure(leaf)));
      message_.bulk.push_back({bytes, bytes->data(), bytes->size()});
      return;
    }
    tensor(leaf.tensor(), what, out);
  }

  void tensor(const Tensor& sent, const std::string& what, WireWriter& out) {
    check_sendable(sent, what);
    auto elements = std::make_shared<Tensor>(contiguous_elements(sent.detach().cpu()));
    rpc::TensorHeader header{.type = *type_of(*elements),
                             .shape = {elements->sizes().begin(), elements->sizes().end()}};
    out.bytes(kTensor, rpc::encode_tensor_header(header, what));
    const auto* data = static_cast<const char*>(elements->data_ptr());
    message_.bulk.push_back({elements, data, elements->nbytes()});
  }

  rpc::Message& message_;
};

class Reader {
 public:
  Reader(std::string_view form, const std::vector<rpc::Bytes>& bulk, std::string_view what)
      : form_(form), bulk_(bulk), what_(what) {}

  Structure read() {
    Structure structure = node(form_, 0);
    check_all_read();
    return structure;
  }

  std::vector<Tensor> read_tensors() {
    std::vector<Tensor> tensors;
    tensors.reserve(bulk_.size());
    WireReader in(form_, what_);
    while (in.next()) {
      if (in.field() == kMember) {
        WireReader member(in.bytes(), what_);
        if (!member.next() || member.field() != kTensor) refuse("has something else than a tensor");
        tensors.push_back(tensor(member.bytes()));
      } else if (in.field() != kKind || in.varint() != kTuple) {
        refuse("has no list of tensors");
      }
    }
    check_all_read();
    return tensors;
  }

 private:
  Structure node(std::string_view bytes, int depth) {
    if (depth > kDeepest) {
      throw InvalidArgumentError(
          str(what_, ": structures are nested more than ", kDeepest, " deep"));
    }
    WireReader in(bytes, what_);
    uint64_t kind = kTuple;
    std::vector<Structure> members;
    std::vector<std::string> keys;
    while (in.next()) {
      switch (in.field()) {
        case kTensor:
          return tensor(in.bytes());
        case kStrings:
          return strings();
        case kKind:
          kind = in.varint();
          break;
        case kKey:
          keys.emplace_back(in.bytes());
          break;
        case kMember:
          members.push_back(node(in.bytes(), depth + 1));
          break;
      }
    }
    if (kind == kTuple && keys.empty()) return Structure::make_tuple(std::move(members));
    if (kind != kDict || keys.size() != members.size()) in.fail("is neither a tuple nor a dict");
    Structure::Dict dict;
    for (size_t i = 0; i < keys.size(); ++i) {
      dict.emplace_back(std::move(keys[i]), std::move(members[i]));
    }
    return Structure::make_dict(std::move(dict));
  }

  void check_all_read() const {
    if (next_ == bulk_.size()) return;
    throw InvalidArgumentError(
        str(what_, ": ", bulk_.size(), " values came, but the form ", "has ", next_));
  }

  [[noreturn]] void refuse(const char* problem) const {
    throw InvalidArgumentError(str(what_, ' ', problem));
  }

  const rpc::Bytes& next_bulk() {
    if (next_ < bulk_.size()) return bulk_[next_++];
    throw InvalidArgumentError(
        str(what_, ": only ", bulk_.size(), " values came for a form of more"));
  }

  Tensor tensor(std::string_view encoded) {
    const rpc::TensorHeader header = rpc::decode_tensor_header(encoded, what_);
    const rpc::Bytes& bytes = next_bulk();
    rpc::check_tensor_bytes(header, bytes.size, what_);
    const auto options = at::TensorOptions().dtype(dtype_of(header.type));
    constexpr uintptr_t kAlignment = 64;
    if (bytes.size > 0 && reinterpret_cast<uintptr_t>(bytes.data) % kAlignment == 0) {
      // Nobody else writes to the received memory.
      return at::from_blob(
          const_cast<char*>(bytes.data), header.shape, [owner = bytes.owner](void*) {}, options);
    }
    Tensor copy = at::empty(header.shape, options);
    if (bytes.size > 0) std::memcpy(copy.data_ptr(), bytes.data, bytes.size);
    return copy;
  }

  Structure strings() {
    const rpc::Bytes& bytes = next_bulk();
    Structure leaf = decode_element({bytes.data, bytes.size}, what_);
    if (leaf.is_leaf() && leaf.leaf().is_strings()) return leaf;
    throw InvalidArgumentError(str(what_, ": strings were announced, but something else came"));
  }

  static DType dtype_of(ElementType type) {
    for (const auto& [dtype, known] : kTypes) {
      if (known == type) return dtype;
    }
    throw InternalError("an element type without a dtype");
  }

  const std::string_view form_;
  const std::vector<rpc::Bytes>& bulk_;
  const std::string what_;
  size_t next_ = 0;
};

}  // namespace

void check_sendable(const Leaf& leaf, const std::string& what) {
  if (!leaf.is_strings()) check_sendable(leaf.tensor(), what);
}

Structure unshared(Structure structure) {
  return structure.map([](const Leaf& leaf) -> Leaf {
    if (!leaf.is_tensor() || !leaf.tensor().defined() || !leaf.tensor().has_storage()) return leaf;
    const Tensor& tensor = leaf.tensor();
    const bool is_own = tensor.use_count() == 1 && tensor.storage().use_count() == 1 &&
                        tensor.storage().resizable();  // else the memory is not libtorch's
    if (is_own) return leaf;
    return tensor.detach().to(at::kCPU, tensor.scalar_type(), /*non_blocking=*/false,
                              /*copy=*/true);
  });
}

rpc::Message to_message(const Structure& structure) {
  rpc::Message message;
  message.control = Writer(message).node(structure, "");
  return message;
}

Structure to_structure(const rpc::Message& message, std::string_view what) {
  return Reader(message.control, message.bulk, what).read();
}

rpc::Message to_message(const std::vector<Tensor>& tensors) {
  rpc::Message message;
  message.control = Writer(message).tuple(tensors);
  return message;
}

std::vector<Tensor> to_tensors(std::string_view form, const std::vector<rpc::Bytes>& bulk,
                               std::string_view what) {
  return Reader(form, bulk, what).read_tensors();
}

}  // namespace cohort::internal
