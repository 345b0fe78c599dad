#include "cohort/cluster/grpc/byte_buffers.h"

#include <grpcpp/support/slice.h>

#include <memory>

namespace cohort::internal::rpc {
namespace {

// Below, a copy costs less than keeping its owner.
constexpr size_t kCopyBytes = 2048;

grpc::Slice to_slice(const Bytes& bytes) {
  if (bytes.size <= kCopyBytes) return {bytes.data, bytes.size};
  auto owner = std::make_unique<std::shared_ptr<const void>>(bytes.owner);
  return {const_cast<char*>(bytes.data), bytes.size,
          [](void* kept) { delete static_cast<std::shared_ptr<const void>*>(kept); },
          owner.release()};
}

}  // namespace

grpc::ByteBuffer to_byte_buffer(const std::vector<Bytes>& slices) {
  if (slices.size() == 1) {
    const grpc::Slice slice = to_slice(slices.front());
    return {&slice, 1};
  }
  std::vector<grpc::Slice> parts;
  parts.reserve(slices.size());
  for (const Bytes& bytes : slices) parts.push_back(to_slice(bytes));
  return {parts.data(), parts.size()};
}

void for_each_slice(const grpc::ByteBuffer& buffer,
                    const std::function<void(std::string_view)>& take) {
  const auto view = [](const grpc::Slice& slice) {
    return std::string_view(reinterpret_cast<const char*>(slice.begin()), slice.size());
  };
  grpc::Slice single;
  if (buffer.TrySingleSlice(&single).ok()) return take(view(single));
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) return;  // no bytes
  for (const grpc::Slice& slice : slices) take(view(slice));
}

}  // namespace cohort::internal::rpc
