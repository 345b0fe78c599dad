#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/data/records/example.h"
#include "tools/output.h"
#include "tools/printable.h"
#include "tools/tfrecord_commands.h"
#include "tools/tfrecord_files.h"

namespace cohort::tools {
namespace {

using internal::FeatureKind;
using internal::FeatureView;
using Json = nlohmann::ordered_json;

// What the records have of one name and kind.
struct FeatureCounts {
  uint64_t records = 0;
  uint64_t fewest = std::numeric_limits<uint64_t>::max();
  uint64_t most = 0;

  void add(uint64_t values) {
    ++records;
    fewest = std::min(fewest, values);
    most = std::max(most, values);
  }
};

// Of hostile files too, which may have a new name in every record.
constexpr size_t kMostFeatures = 10'000;

struct Features {
  std::map<std::pair<std::string, FeatureKind>, FeatureCounts> counts;
  uint64_t others = 0;      // records that are no tf.Examples
  bool incomplete = false;  // there are more than kMostFeatures

  void add(std::string_view record) {
    try {
      internal::for_each_feature(record, [&](std::string_view name, const FeatureView& feature) {
        const auto key = std::make_pair(std::string(name), feature.kind());
        if (counts.size() >= kMostFeatures && !counts.contains(key)) {
          incomplete = true;
        } else {
          counts[key].add(feature.count());
        }
      });
    } catch (const DataLossError&) {
      ++others;
    }
  }
};

struct Listing {
  std::vector<std::pair<std::string, TFRecordSummary>> files;
  Features features;

  bool damaged() const {
    return std::any_of(files.begin(), files.end(),
                       [](const auto& file) { return !file.second.damage.empty(); });
  }
};

void print_files(const Listing& listing, std::ostream& out) {
  std::vector<std::vector<std::string>> rows;
  uint64_t records = 0, bytes = 0;
  for (const auto& [path, summary] : listing.files) {
    std::vector<std::string> row = {printable(path), counted(summary.records, "record"),
                                    counted(summary.bytes, "byte")};
    if (summary.compression != internal::Compression::kNone) {
      row.emplace_back(internal::compression_name(summary.compression));
    }
    if (!summary.damage.empty()) row.push_back("damaged: " + printable(summary.damage));
    rows.push_back(std::move(row));
    records += summary.records;
    bytes += summary.bytes;
  }
  print_table(rows, out);
  if (listing.files.size() < 2) return;
  out << counted(listing.files.size(), "file") << ", " << counted(records, "record") << ", "
      << counted(bytes, "byte") << '\n';
}

std::string count_text(const FeatureCounts& counts) {
  if (counts.fewest == counts.most) return counted(counts.most, "value");
  return internal::decimal_digits(counts.fewest) + " to " + counted(counts.most, "value");
}

void print_features(const Features& features, std::ostream& out) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [feature, counts] : features.counts) {
    rows.push_back({printable(feature.first),
                    std::string(internal::feature_kind_name(feature.second)), count_text(counts),
                    "in " + counted(counts.records, "record")});
  }
  print_table(rows, out);
  if (features.incomplete) out << "and more features\n";
  if (features.others > 0) {
    out << counted(features.others, "record") << " that "
        << (features.others == 1 ? "is no tf.Example\n" : "are no tf.Examples\n");
  }
}

Json to_json(const Listing& listing, bool with_features) {
  Json json = {{"files", Json::array()}};
  for (const auto& [path, summary] : listing.files) {
    Json file = {{"path", path},
                 {"records", summary.records},
                 {"bytes", summary.bytes},
                 {"compression", internal::compression_name(summary.compression)}};
    if (!summary.damage.empty()) file["damage"] = summary.damage;
    json["files"].push_back(std::move(file));
  }
  if (!with_features) return json;
  json["features"] = Json::array();
  for (const auto& [feature, counts] : listing.features.counts) {
    json["features"].push_back({{"name", feature.first},
                                {"type", internal::feature_kind_name(feature.second)},
                                {"records", counts.records},
                                {"fewest_values", counts.fewest},
                                {"most_values", counts.most}});
  }
  json["other_records"] = listing.features.others;
  return json;
}

}  // namespace

int list_tfrecords(internal::FileSystem& files, const TFRecordLsOptions& options, std::ostream& out,
                   std::ostream& err) {
  Listing listing;
  int failed = kExitOk;
  for (const std::string& path : options.paths) {
    try {
      listing.files.emplace_back(
          path, read_tfrecords(files, path, options.compression, [&](std::string_view record) {
            if (options.features) listing.features.add(record);
          }));
    } catch (const Error& error) {
      if (options.paths.size() == 1) throw;
      err << "cohort: " << printable(error.what()) << '\n';
      if (failed == kExitOk) failed = exit_code(error);
    }
  }
  if (options.json) {
    print_json(to_json(listing, options.features), out);
  } else {
    print_files(listing, out);
    if (options.features) print_features(listing.features, out);
  }
  if (failed != kExitOk) return failed;
  return listing.damaged() ? kExitBadData : kExitOk;
}

}  // namespace cohort::tools
