// A table of mixed columns to a wide-and-deep model, trained by Model::fit on several replicas or
// with parameter servers.
//
//   build/release/bin/tabular
//   build/release/bin/tabular --ps 2 --workers 2
//   build/release/bin/tabular --csv "$(examples/tabular/fetch_penguins)" --label species --epochs 20
#include <cohort/cohort.h>

#include <filesystem>
#include <optional>
#include <string>

#include "columns.h"
#include "common/in_process_cluster.h"
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

// What the table says before any training.
struct Task {
  explicit Task(const Options& options)
      : path(table_path(options)),
        table(read_table(path, options.batch, 1, options)),
        columns(columns_of(table, options.texts)),
        labels(table),
        features(features_of(table, columns, labels)) {}

  std::string path;
  tf::data::Dataset table;
  Columns columns;
  Labels labels;
  tf::data::Dataset features;
};

template <class Strategy>
tf::keras::Functional compiled_model(const Strategy& strategy, const Task& task) {
  const auto scope = strategy.scope();
  tf::keras::Functional model =
      wide_and_deep(task.features, task.columns, task.labels.num_classes());
  model.compile({.optimizer = tf::keras::optimizers::Adam({.learning_rate = 1e-2}),
                 .loss = tf::keras::losses::SparseCategoricalCrossentropy({.from_logits = true}),
                 .metrics = {"accuracy"}});
  return model;
}

void train_on_replicas(const Task& task, const Options& options) {
  const tf::distribute::MirroredStrategy strategy;
  compiled_model(strategy, task).fit(task.features, {.epochs = options.epochs, .verbose = 2});
}

void train_with_parameter_servers(const Task& task, const Options& options) {
  const examples::InProcessCluster cluster(options.workers, options.ps);
  const tf::distribute::ParameterServerStrategy strategy(cluster.resolver());
  // Workers read the table each in its own order, at its own pace.
  const tf::keras::DatasetCreator input([&](const tf::distribute::InputContext& context) {
    const int64_t batch = context.get_per_replica_batch_size(options.batch);
    Options own = options;
    own.seed += static_cast<uint64_t>(context.input_pipeline_id);
    return features_of(read_table(task.path, batch, std::nullopt, own), task.columns, task.labels);
  });
  int64_t steps = 0;
  for (auto batches = task.table.iterator(); batches.next();) ++steps;
  compiled_model(strategy, task)
      .fit(input, {.epochs = options.epochs, .verbose = 2, .steps_per_epoch = steps});
}

void run(const Options& options) {
  tf::random::set_seed(options.seed);
  tf::config::set_logical_device_configuration("CPU", options.ps > 0 ? 1 : options.replicas);
  const Task task(options);
  if (options.ps > 0) {
    train_with_parameter_servers(task, options);
  } else {
    train_on_replicas(task, options);
  }
}

}  // namespace
}  // namespace tabular

int main(int argc, char** argv) {
  const tabular::Options options = tabular::parse_options(argc, argv);
  return tf::run_program([&] { tabular::run(options); });
}
