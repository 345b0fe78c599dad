#include "cohort/distribute/reduce/gather_strings.h"

#include <ATen/ops/empty.h>

#include <cstring>
#include <memory>
#include <string_view>

#include "cohort/distribute/core/strategy_core.h"

namespace cohort::internal {
namespace {

// A string is known by its replica and its length, in one number: the strings of a replica keep
// their order along whatever axis they are gathered, so that their bytes follow each other.
constexpr int kLengthBits = 40;

Tensor marks_of(const StringTensor& strings, int64_t replica) {
  Tensor marks = at::empty(strings.sizes(), int64);
  auto* const mark = marks.data_ptr<int64_t>();
  for (int64_t i = 0; i < strings.numel(); ++i) {
    mark[i] = (replica << kLengthBits) | static_cast<int64_t>(strings.data()[i].size());
  }
  return marks;
}

Tensor bytes_of(const StringTensor& strings) {
  int64_t count = 0;
  for (int64_t i = 0; i < strings.numel(); ++i) {
    count += static_cast<int64_t>(strings.data()[i].size());
  }
  Tensor bytes = at::empty({count}, uint8);
  auto* next = bytes.data_ptr<uint8_t>();
  for (int64_t i = 0; i < strings.numel(); ++i) {
    const std::string_view text = strings.data()[i];
    if (!text.empty()) std::memcpy(next, text.data(), text.size());
    next += text.size();
  }
  return bytes;
}

struct Gathered {
  Tensor bytes;  // of all replicas, one after another
  std::vector<std::string_view> views;
};

}  // namespace

StringTensor gather_strings(const StrategyCore& core, const std::vector<StringTensor>& local_values,
                            int64_t axis) {
  const auto view = core.group().view();
  const int first = core.are_of_all_replicas(local_values.size()) ? 0 : view->first_replica();
  std::vector<Tensor> marks;
  std::vector<Tensor> bytes;
  for (size_t i = 0; i < local_values.size(); ++i) {
    marks.push_back(marks_of(local_values[i], first + static_cast<int64_t>(i)));
    bytes.push_back(bytes_of(local_values[i]));
  }
  const Tensor all = core.gather_over_replicas(marks, axis).contiguous();
  const auto gathered = std::make_shared<Gathered>();
  gathered->bytes = core.gather_over_replicas(bytes, 0);
  const auto* const mark = all.data_ptr<int64_t>();
  const auto replica_of = [&](int64_t i) { return static_cast<size_t>(mark[i] >> kLengthBits); };
  const auto length_of = [&](int64_t i) { return mark[i] & ((int64_t{1} << kLengthBits) - 1); };

  // The beginning of each replica's next string.
  std::vector<int64_t> next(static_cast<size_t>(view->num_replicas()) + 1);
  for (int64_t i = 0; i < all.numel(); ++i) next[replica_of(i) + 1] += length_of(i);
  for (size_t replica = 1; replica < next.size(); ++replica) next[replica] += next[replica - 1];
  const auto* const text = reinterpret_cast<const char*>(gathered->bytes.data_ptr<uint8_t>());
  for (int64_t i = 0; i < all.numel(); ++i) {
    int64_t& begin = next[replica_of(i)];
    gathered->views.emplace_back(text + begin, static_cast<size_t>(length_of(i)));
    begin += length_of(i);
  }
  return StringTensor::over(gathered, gathered->views.data(), all.sizes().vec());
}

}  // namespace cohort::internal
