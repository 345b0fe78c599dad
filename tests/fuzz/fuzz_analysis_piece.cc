// Saved parts of analyses, which other tasks send and files hold: a part is refused with a
// DataLossError, or the result can be computed.

#include <cstdlib>
#include <string>
#include <string_view>

#include "cohort/core/bytes/wire.h"
#include "cohort/core/error.h"
#include "cohort/core/files/crc32c.h"
#include "cohort/core/files/simulated_file_system.h"
#include "cohort/transform/analysis/analyses.h"

namespace {

using namespace cohort::internal;  // NOLINT

std::unique_ptr<Accumulator> started(uint8_t which, const AnalysisContext& context) {
  static const AnalysisPtr analyses[] = {
      min_and_max_analysis({.reduce_instance_dims = false}),
      sum_analysis(),
      size_analysis({.reduce_instance_dims = false}),
      mean_and_variance_analysis(),
      quantiles_analysis({.num_buckets = 5, .epsilon = 0.5}),
      vocabulary_analysis({.top_k = 3}),
      vocabulary_analysis({.weighted = true, .store_frequency = true}),
      count_per_key_analysis(),
      bucket_counts_analysis(9)};
  return analyses[which % std::size(analyses)]->start(context);
}

// A piece with these bytes as its payload: a fuzzer finds no checksum.
std::string with_checksum(Accumulator& of, std::string_view payload) {
  const std::string empty = of.save()->next().value();
  WireReader reader(empty, "an empty piece");
  reader.next();
  const std::string_view name = reader.bytes();
  return WireWriter()
      .bytes(1, name)
      .bytes(2, payload)
      .fixed32(3, mask_crc(crc32c(payload, crc32c(name))))
      .str();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  SimulatedFileSystem files;
  files.make_directories("/d");
  const AnalysisContext context = {files, "/d", "/d", size_t{1} << 16};
  const auto accumulator = started(data[0], context);
  const bool as_it_is = data[1] % 8 == 0;
  try {
    accumulator->add_saved(as_it_is ? std::string(bytes) : with_checksum(*accumulator, bytes), "f");
  } catch (const cohort::DataLossError&) {
    return 0;
  }
  // What was taken can be saved and taken again, and has a result.
  const auto again = started(data[0], context);
  for (auto saved = accumulator->save(); auto piece = saved->next();) again->add_saved(*piece, "g");
  again->merge(*accumulator);
  again->finish();
  return 0;
}
