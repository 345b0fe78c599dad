// Any bytes are parsed as tensors that fit the spec, or are refused: the numbers of a record that
// say where rows end, or where values lie, lead nowhere else. Links libtorch: tensors are the result.
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>

#include "cohort/core/error.h"
#include "cohort/core/structure/composite.h"
#include "cohort/core/structure/ragged_tensor.h"
#include "cohort/core/structure/sparse_tensor.h"
#include "cohort/data/files/parse_example.h"
#include "cohort/data/files/parse_sequence_example.h"

namespace {

using namespace cohort;
using io::RaggedFeature;

void require(bool holds, std::string_view property) {
  if (holds) return;
  std::cerr << "fuzz_parse_example: broken property: " << property << '\n';
  std::abort();
}

RaggedFeature ragged(RaggedFeature::Partition partition) {
  return RaggedFeature(int64, {.value_key = "v", .partitions = {std::move(partition)}});
}

// One of each kind, of few keys, so that few bytes say much.
const io::ExampleFeatures& features() {
  static const auto& all = *new io::ExampleFeatures{
      {"splits", ragged(RaggedFeature::RowSplits{"p"})},
      {"lengths", ragged(RaggedFeature::RowLengths{"p"})},
      {"starts", ragged(RaggedFeature::RowStarts{"p"})},
      {"limits", ragged(RaggedFeature::RowLimits{"p"})},
      {"ids", ragged(RaggedFeature::ValueRowIds{"p"})},
      {"uniform", ragged(RaggedFeature::UniformRowLength{2})},
      {"twice", RaggedFeature(int64, {.value_key = "v",
                                      .partitions = {RaggedFeature::RowLengths{"q"},
                                                     RaggedFeature::RowSplits{"p"}}})},
      {"sparse", io::SparseFeature({"p", "q"}, "v", int64, {5, 7})},
      {"rows", io::FixedLenSequenceFeature({2}, int64, {.allow_missing = true})},
      {"v", io::VarLenFeature(int64)},
      {"p", io::RaggedFeature::strings()},
  };
  return all;
}

// Rows and indices lead to values, or this fails.
void check_values(const Structure& parsed) {
  internal::map_nodes(parsed, [](const Structure& node) -> Structure {
    if (internal::composite_kind(node) == internal::Composite::kRagged) {
      const RaggedTensor rows = node;
      RaggedTensor::from_nested_row_splits(rows.flat_values(), rows.nested_row_splits());
    } else if (internal::composite_kind(node) == internal::Composite::kSparse) {
      const SparseTensor sparse = node;
      SparseTensor(sparse.indices(), sparse.values(), sparse.dense_shape());
    }
    return node;
  });
}

template <class Parse>
void check(const StructureSpec& spec, const Parse& parse) {
  try {
    const Structure parsed = parse();
    require(!spec.first_mismatch(parsed), "what is parsed fits the spec");
    check_values(parsed);
  } catch (const DataLossError&) {
  } catch (const InvalidArgumentError& error) {
    const std::string_view text = error.what();
    require(text.starts_with("parse_"), "the error says that the record does not fit");
  } catch (const ResourceExhaustedError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const StringTensor one = StringTensor::scalar(bytes), two({bytes, bytes});
  for (const auto& feature : features()) {
    const io::ExampleFeatures sole = {feature};
    check(io::example_spec(sole, true), [&] { return io::parse_example(two, sole); });
    check(io::example_spec(sole, false), [&] { return io::parse_example(one, sole); });
    if (std::holds_alternative<io::SparseFeature>(feature.second)) continue;
    check(io::sequence_example_spec({}, sole, true),
          [&] { return io::parse_sequence_example(two, {}, sole); });
    check(io::sequence_example_spec({}, sole, false),
          [&] { return io::parse_single_sequence_example(one, {}, sole); });
  }
  return 0;
}
