#include "options.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>

namespace tabular {
namespace {

void add_options_of_the_table(CLI::App& app, Options& options) {
  app.add_option("--csv", options.csv,
                 "Files with a header, as a path or pattern. Default: a table of customers, which "
                 "is made from the seed");
  app.add_option("--rows", options.rows, "Of that table")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
      ->capture_default_str();
  app.add_option("--label", options.label, "The column to predict: classes")->capture_default_str();
  app.add_option("--text", options.texts, "A column of texts; several times");
  app.add_option("--na-value", options.na_value, "What stands for a missing value")
      ->capture_default_str();
}

void add_options_of_the_training(CLI::App& app, Options& options) {
  app.add_option("--strategy", options.strategy)
      ->check(CLI::IsMember({"mirrored", "parameter_server"}))
      ->capture_default_str();
  app.add_option("--replicas", options.replicas, "Of mirrored")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--workers", options.workers, "Of parameter_server, in this process")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--ps", options.ps, "Of parameter_server, in this process")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--epochs", options.epochs)
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}))
      ->capture_default_str();
  app.add_option("--batch", options.batch, "The rows of a global batch")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Of the table, the order and initial values")
      ->capture_default_str();
}

}  // namespace

Options parse_options(int argc, char** argv) {
  constexpr int kExitUsage = 64;
  Options options;
  options.out = (std::filesystem::temp_directory_path() / "cohort_tabular").string();
  CLI::App app{"A wide-and-deep model of a table: CSV files to features to a trained model."};
  add_options_of_the_table(app, options);
  add_options_of_the_training(app, options);
  app.add_option("--out", options.out, "The directory of the results, for tabular_predict")
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error) == 0 ? EXIT_SUCCESS : kExitUsage);
  }
  // The texts of the table that is made are not those of others.
  if (app.count("--csv") > 0 && app.count("--text") == 0) options.texts.clear();
  return options;
}

}  // namespace tabular
