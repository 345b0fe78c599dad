// Operations that need what an analysis has found, and buckets of hashes.
#include <ATen/core/Tensor.h>
#include <ATen/ops/bucketize.h>
#include <ATen/ops/empty.h>

#include "cohort/core/bytes/fingerprint.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/transform/graph/operations.h"

namespace cohort::internal {
namespace {

using keras::Config;
using Types = std::span<const ColumnType>;
using Values = std::span<const ColumnValue>;

// The numbers of tokens in a vocabulary. Others get default_value, or with OOV buckets the number of
// the bucket that their hash chooses, behind the vocabulary.
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
    const lookup::StaticHashTable& table = values[1].vocabulary->table;
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
  return [buckets](Values values) {
    const StringTensor& texts = values[0].values.strings();
    const Tensor numbers = at::empty(texts.sizes(), at::kLong);
    int64_t* out = numbers.data_ptr<int64_t>();
    for (int64_t i = 0; i < texts.numel(); ++i) {
      out[i] =
          static_cast<int64_t>(fingerprint64(texts.data()[i]) % static_cast<uint64_t>(buckets));
    }
    return ColumnValue{.values = numbers, .row_splits = values[0].row_splits};
  };
}

// The number of boundaries that are at most x.
EvaluateColumn apply_buckets(const Config&, Types inputs) {
  take_inputs(inputs, 2);
  take_numbers(inputs);
  if (!inputs[1].is_statistic() || inputs[1].shape.size() != 1) {
    throw InvalidArgumentError("its boundaries are a statistic [boundaries]");
  }
  return [](Values values) {
    const Tensor x = values[0].values.tensor().contiguous();
    return ColumnValue{.values = at::bucketize(x, values[1].values.tensor(), /*out_int32=*/false,
                                               /*right=*/true),
                       .row_splits = values[0].row_splits};
  };
}

constexpr NamedOperation kLookupOperations[] = {
    {"apply_vocabulary", apply_vocabulary},
    {"hash_strings", hash_strings},
    {"apply_buckets", apply_buckets},
};

}  // namespace

std::span<const NamedOperation> lookup_operations() { return kLookupOperations; }

}  // namespace cohort::internal
