// Operations that need what an analysis has found, and buckets of hashes.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/bucketize.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/searchsorted.h>

#include <optional>

#include "cohort/core/bytes/fingerprint.h"
#include "cohort/core/bytes/keyed_hash.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/transform/graph/operations.h"

namespace cohort::internal {
namespace {

using keras::Config;
using Types = std::span<const ColumnType>;
using Values = std::span<const ColumnValue>;

// The numbers of tokens in a vocabulary. Others get default_value, or with OOV buckets the number
// of the bucket that their hash chooses, behind the vocabulary.
EvaluateColumn apply_vocabulary(const Config& attributes, Types inputs) {
  take_inputs(inputs, 2);
  take_strings(inputs[0]);
  if (inputs[1].kind != ColumnKind::kVocabulary) {
    throw InvalidArgumentError("its second input is a vocabulary");
  }
  const int64_t default_value = attributes.get_int("default_value");
  const int64_t num_oov_buckets = attributes.get_int("num_oov_buckets");
  if (num_oov_buckets < 0) {
    throw InvalidArgumentError(str("num_oov_buckets is at least 0, but got ", num_oov_buckets));
  }
  return [=](Values values) {
    const lookup::StaticHashTable& table = values[1].vocabulary->table();
    const StringTensor& texts = values[0].values.strings();
    const Tensor numbers = table.lookup(values[0].values).tensor();
    int64_t* out = numbers.data_ptr<int64_t>();
    const int64_t size = table.size();
    for (int64_t i = 0; i < numbers.numel(); ++i) {
      if (out[i] >= 0) continue;  // the table's default is -1
      out[i] = num_oov_buckets == 0
                   ? default_value
                   : size + static_cast<int64_t>(fingerprint64(texts.data()[i]) %
                                                 static_cast<uint64_t>(num_oov_buckets));
    }
    return ColumnValue{.values = numbers, .row_splits = values[0].row_splits};
  };
}

EvaluateColumn hash_strings(const Config& attributes, Types inputs) {
  take_inputs(inputs, 1);
  take_strings(inputs[0]);
  const int64_t buckets = attributes.get_int("hash_buckets");
  if (buckets < 1) throw InvalidArgumentError(str("hash_buckets is at least 1, but got ", buckets));
  std::optional<HashKey> key;
  if (attributes.contains("key")) {
    const std::vector<int64_t> halves = attributes.get_ints("key");  // their bits
    if (halves.size() != 2) throw InvalidArgumentError("key is a list of two numbers");
    key = HashKey{static_cast<uint64_t>(halves[0]), static_cast<uint64_t>(halves[1])};
  }
  return [buckets, key](Values values) {
    const StringTensor& texts = values[0].values.strings();
    const Tensor numbers = at::empty(texts.sizes(), at::kLong);
    int64_t* out = numbers.data_ptr<int64_t>();
    for (int64_t i = 0; i < texts.numel(); ++i) {
      const std::string_view text = texts.data()[i];
      const uint64_t hash = key.has_value() ? keyed_hash64(text, *key) : fingerprint64(text);
      out[i] = static_cast<int64_t>(hash % static_cast<uint64_t>(buckets));
    }
    return ColumnValue{.values = numbers, .row_splits = values[0].row_splits};
  };
}

// In a dtype that both are compared in: floating numbers as float32, as TensorFlow Transform does.
Tensor compared(const Tensor& x) {
  return x.to(at::isFloatingType(x.scalar_type()) ? at::kFloat : at::kDouble);
}

// The number of boundaries that are at most x.
EvaluateColumn apply_buckets(const Config&, Types inputs) {
  take_inputs(inputs, 2);
  take_numbers(inputs);
  const auto& shape = inputs[1].shape;
  if (!inputs[1].is_statistic() || shape.empty()) {
    throw InvalidArgumentError("its boundaries are a statistic [boundaries]");
  }
  if (shape.size() == 1) {
    return [](Values values) {
      const Tensor x = compared(values[0].values.tensor()).contiguous();
      const Tensor boundaries = values[1].values.tensor().to(x.scalar_type());
      return ColumnValue{
          .values = at::bucketize(x, boundaries, /*out_int32=*/false, /*right=*/true),
          .row_splits = values[0].row_splits};
    };
  }
  if (inputs[0].is_ragged() || inputs[0].shape.size() + 1 != shape.size()) {
    throw InvalidArgumentError("there are boundaries for each position of a row");
  }
  return [](Values values) {
    // Positions first: each has boundaries of its own.
    const Tensor x = compared(values[0].values.tensor());
    const Tensor boundaries = values[1].values.tensor().to(x.scalar_type()).contiguous();
    const Tensor by_position = x.movedim(0, -1).contiguous();
    return ColumnValue{.values = at::searchsorted(boundaries, by_position, /*out_int32=*/false,
                                                  /*right=*/true)
                                     .movedim(-1, 0)
                                     .contiguous()};
  };
}

// Boundaries as a histogram has them: a little lower, so that rounding moves no value below its
// own.
EvaluateColumn shift_boundaries(const Config&, Types inputs) {
  take_inputs(inputs, 1);
  take_numbers(inputs);
  return [](Values values) {
    return ColumnValue{.values = values[0].values.tensor().to(at::kFloat) - 0.0001};
  };
}

// The bin of x between boundaries of which the outermost do not count; that of NaN is the first.
EvaluateColumn histogram_bins(const Config&, Types inputs) {
  take_inputs(inputs, 2);
  take_numbers(inputs);
  if (!inputs[1].is_statistic() || inputs[1].shape.size() != 1) {
    throw InvalidArgumentError("its boundaries are a statistic [boundaries]");
  }
  return [](Values values) {
    const Tensor x = values[0].values.tensor().to(at::kFloat).contiguous();
    const Tensor inner = values[1].values.tensor().slice(0, 1, -1).contiguous();
    const Tensor bins = at::bucketize(x, inner, /*out_int32=*/false, /*right=*/false);
    return ColumnValue{.values = bins.masked_fill(at::isnan(x), 0),
                       .row_splits = values[0].row_splits};
  };
}

// A statistic [1, ..] without its first dimension.
EvaluateColumn first(const Config&, Types inputs) {
  take_inputs(inputs, 1);
  take_numbers(inputs);
  if (!inputs[0].is_statistic() || inputs[0].shape.empty()) {
    throw InvalidArgumentError("it takes a statistic with dimensions");
  }
  return
      [](Values values) { return ColumnValue{.values = values[0].values.tensor().select(0, 0)}; };
}

EvaluateColumn linspace(const Config& attributes, Types inputs) {
  take_inputs(inputs, 2);
  take_numbers(inputs);
  const int64_t num = attributes.get_int("num");
  if (num < 2) throw InvalidArgumentError("num is at least 2");
  return [num](Values values) {
    return ColumnValue{.values =
                           at::linspace(values[0].values.tensor().item<float>(),
                                        values[1].values.tensor().item<float>(), num, at::kFloat)};
  };
}

constexpr NamedOperation kLookupOperations[] = {
    {"apply_vocabulary", apply_vocabulary},
    {"hash_strings", hash_strings},
    {"apply_buckets", apply_buckets},
    {"shift_boundaries", shift_boundaries},
    {"histogram_bins", histogram_bins},
    {"linspace", linspace},
    {"first", first},
};

}  // namespace

std::span<const NamedOperation> lookup_operations() { return kLookupOperations; }

}  // namespace cohort::internal
