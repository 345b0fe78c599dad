#include "input.h"

#include <limits>
#include <utility>
#include <variant>

namespace tabular {

namespace tf = cohort;
namespace layers = tf::keras::layers;
using tf::data::CsvColumn;

namespace {

const CsvColumn kNumber(std::numeric_limits<float>::quiet_NaN());
const CsvColumn kText("");

tf::StructureSpec header_of(const std::string& path, const std::string& na_value) {
  return tf::data::experimental::make_csv_dataset(path, 1, {.na_value = na_value}).element_spec();
}

}  // namespace

CsvColumns columns_of_files(const std::string& path, const std::string& label,
                            const std::string& na_value) {
  CsvColumns columns;
  const tf::StructureSpec header = header_of(path, na_value);
  for (const auto& [name, column] : header.items()) {
    columns.emplace(name, column.leaf().is_string() || name == label ? kText : kNumber);
  }
  if (!columns.contains(label)) {
    throw tf::InvalidArgumentError("'" + path + "' has no column '" + label + "' of labels");
  }
  return columns;
}

CsvColumns columns_of_transform(const tf::transform::TFTransformOutput& output) {
  CsvColumns columns;
  for (const auto& [name, feature] : output.raw_feature_spec()) {
    columns.emplace(name, std::get<tf::io::FixedLenFeature>(feature).dtype ? kNumber : kText);
  }
  return columns;
}

tf::data::Dataset read_table(const std::string& path, const CsvColumns& columns,
                             const ReadOptions& options) {
  tf::data::experimental::MakeCsvDatasetOptions csv = {.na_value = options.na_value,
                                                       .num_epochs = 1,
                                                       .shuffle = options.shuffle_seed.has_value(),
                                                       .shuffle_seed = options.shuffle_seed};
  const tf::StructureSpec header = header_of(path, options.na_value);
  for (const auto& [name, unused] : header.items()) {
    const auto column = columns.find(name);
    if (column == columns.end()) {
      throw tf::InvalidArgumentError("'" + path + "' has a column '" + name +
                                     "', which the model's table does not have");
    }
    csv.column_defaults.push_back(column->second);
  }
  return tf::data::experimental::make_csv_dataset(path, options.batch, csv);
}

tf::data::Dataset features_of(const tf::data::Dataset& rows,
                              const tf::transform::TFTransformOutput& output) {
  std::map<std::string, layers::CategoryEncoding> multi_hot;
  for (const auto& [name, feature] : output.transformed_feature_spec()) {
    if (std::holds_alternative<tf::io::VarLenFeature>(feature)) {
      multi_hot.emplace(name, output.num_buckets_for_transformed_feature(name));
    }
  }
  return rows.map(output.transform_features_layer())
      .map([multi_hot](const tf::Structure& transformed) {
        tf::Structure::Dict features = transformed.items();
        for (auto& [name, feature] : features) {
          if (const auto layer = multi_hot.find(name); layer != multi_hot.end()) {
            feature = layer->second(feature);
          }
        }
        return tf::dict(std::move(features));
      });
}

}  // namespace tabular
