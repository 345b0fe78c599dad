// A table of mixed columns to a wide-and-deep model: tf.Transform finds what features need of the
// whole table, Model::fit trains on replicas or with parameter servers, and the directory --out
// gets all that predict.cc needs.
//
//   build/release/bin/tabular
//   build/release/bin/tabular --strategy parameter_server --workers 2 --ps 2
//   build/release/bin/tabular --csv "$(examples/tabular/fetch_penguins)" --label species --epochs 20
#include <cohort/cohort.h>

#include <filesystem>
#include <iostream>
#include <string>

#include "common/in_process_cluster.h"
#include "input.h"
#include "model.h"
#include "options.h"
#include "predictions.h"
#include "preprocess.h"
#include "table.h"

namespace tf = cohort;

namespace tabular {
namespace {

constexpr int64_t kShownRows = 5;

std::string table_path(const Options& options) {
  if (!options.csv.empty()) return options.csv;
  const std::string path = options.out + "/table.csv";
  write_table(path, {.rows = options.rows, .seed = options.seed});
  return path;
}

void train(const tf::distribute::Strategy& strategy, const Options& options) {
  const std::string path = table_path(options);
  const CsvColumns columns = columns_of_files(path, options.label, options.na_value);
  ReadOptions read = {.batch = options.batch, .na_value = options.na_value};
  const auto rows = read_table(path, columns, read);
  const auto output = tf::transform::analyze_dataset(
      rows, preprocessing({.label = options.label, .texts = options.texts}),
      options.out + "/features", {.overwrite = true});

  auto scope = strategy.scope();
  const tf::keras::Functional model = wide_and_deep(output);
  model.compile({.optimizer = tf::keras::optimizers::Adam({.learning_rate = 1e-2}),
                 .loss = tf::keras::losses::SparseCategoricalCrossentropy({.from_logits = true}),
                 .metrics = {"accuracy"}});
  scope.close();

  read.shuffle_seed = options.seed;
  const auto batches =
      features_of(read_table(path, columns, read), output).map([](const tf::Structure& features) {
        return tf::tuple(features, features["label"]);
      });
  model.fit(batches, {.epochs = options.epochs, .verbose = 2});
  model.save(options.out + "/model");

  std::cout << "the first rows:\n";
  print_predictions(model, features_of(rows.unbatch().take(kShownRows).batch(kShownRows), output),
                    output);
}

void run(const Options& options) {
  tf::random::set_seed(options.seed);
  std::filesystem::create_directories(options.out);
  if (options.strategy == "mirrored") {
    tf::config::set_logical_device_configuration("CPU", options.replicas);
    train(tf::distribute::MirroredStrategy(), options);
  } else {
    const examples::InProcessCluster cluster(options.workers, options.ps);
    train(tf::distribute::ParameterServerStrategy(cluster.resolver()), options);
  }
}

}  // namespace
}  // namespace tabular

int main(int argc, char** argv) {
  const tabular::Options options = tabular::parse_options(argc, argv);
  return tf::run_program([&] { tabular::run(options); });
}
