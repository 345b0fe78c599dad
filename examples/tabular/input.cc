#include "input.h"

#include <utility>
#include <vector>

namespace tabular {

namespace tf = cohort;
namespace layers = tf::keras::layers;

tf::data::Dataset read_table(const std::string& path, int64_t batch_size,
                             std::optional<int64_t> epochs, const Options& options) {
  return tf::data::experimental::make_csv_dataset(path, batch_size,
                                                  {.label_name = options.label,
                                                   .na_value = options.na_value,
                                                   .num_epochs = epochs,
                                                   .shuffle_seed = options.seed});
}

// No place is kept for unknown labels: the classes are those of the table.
Labels::Labels(const tf::data::Dataset& table)
    : are_strings_(table.element_spec().members()[1].leaf().is_string()),
      strings_({.num_oov_indices = 0}),
      integers_({.num_oov_indices = 0}) {
  const auto labels = table.map([](const tf::Structure& batch) { return batch[1]; });
  if (are_strings_) {
    strings_.adapt(labels);
  } else {
    integers_.adapt(labels);
  }
}

int64_t Labels::num_classes() const {
  return are_strings_ ? strings_.vocabulary_size() : integers_.vocabulary_size();
}

tf::Tensor Labels::operator()(const tf::Structure& label) const {
  if (are_strings_) return strings_(label.strings());
  return integers_(label.tensor());
}

tf::data::Dataset features_of(const tf::data::Dataset& table, const Columns& columns,
                              const Labels& labels) {
  return table.map([columns, labels](const tf::Structure& batch) {
    std::vector<tf::Tensor> numbers;
    for (const std::string& name : columns.numbers) {
      numbers.push_back(batch[0][name].tensor().to(tf::float32));
    }
    tf::Structure::Dict features = {{"numbers", tf::stack(numbers, 1)}};
    for (const auto* names : {&columns.categories, &columns.texts}) {
      for (const std::string& name : *names) features.emplace_back(name, batch[0][name]);
    }
    return tf::tuple(tf::dict(std::move(features)), labels(batch[1]));
  });
}

}  // namespace tabular
