// A table of mixed columns to a wide-and-deep model, trained by Model::fit on several replicas.
//
//   build/release/bin/tabular
//   build/release/bin/tabular --csv "$(examples/tabular/fetch_penguins)" --label species --epochs 20
#include <cohort/cohort.h>

#include <filesystem>
#include <string>

#include "columns.h"
#include "input.h"
#include "model.h"
#include "options.h"
#include "table.h"

namespace tf = cohort;

namespace tabular {
namespace {

std::string table_path(const Options& options) {
  if (!options.csv.empty()) return options.csv;
  const std::string path =
      options.made.empty()
          ? (std::filesystem::temp_directory_path() / "cohort_tabular.csv").string()
          : options.made;
  write_table(path, {.rows = options.rows, .seed = options.seed});
  return path;
}

void run(const Options& options) {
  tf::random::set_seed(options.seed);
  tf::config::set_logical_device_configuration("CPU", options.replicas);
  const tf::data::Dataset table = read_table(table_path(options), options);
  const Columns columns = columns_of(table, options.texts);
  const Labels labels(table);
  const tf::data::Dataset features = features_of(table, columns, labels);

  const tf::distribute::MirroredStrategy strategy;
  const auto scope = strategy.scope();
  const tf::keras::Functional model = wide_and_deep(features, columns, labels.num_classes());
  model.compile({.optimizer = tf::keras::optimizers::Adam({.learning_rate = 1e-2}),
                 .loss = tf::keras::losses::SparseCategoricalCrossentropy({.from_logits = true}),
                 .metrics = {"accuracy"}});
  model.fit(features, {.epochs = options.epochs, .verbose = 2});
}

}  // namespace
}  // namespace tabular

int main(int argc, char** argv) {
  const tabular::Options options = tabular::parse_options(argc, argv);
  return tf::run_program([&] { tabular::run(options); });
}
