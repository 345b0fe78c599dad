#include "options.h"

#include <CLI/CLI.hpp>
#include <cstdlib>

namespace tabular {

Options parse_options(int argc, char** argv) {
  constexpr int kExitUsage = 64;
  Options options;
  CLI::App app{"A wide-and-deep model of a table: CSV files to features, trained on replicas."};
  auto* const csv = app.add_option("--csv", options.csv,
                                   "Files with a header, as a path or pattern. Default: a table of "
                                   "customers, which is made from the seed");
  app.add_option("--made", options.made,
                 "Where that table is written. Default: among temporary files");
  app.add_option("--rows", options.rows, "Of that table")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
      ->capture_default_str();
  app.add_option("--label", options.label, "The column to predict: integers or words")
      ->capture_default_str();
  auto* const texts = app.add_option("--text", options.texts, "A column of texts; several times");
  app.add_option("--na-value", options.na_value, "What stands for a missing value")
      ->capture_default_str();
  app.add_option("--epochs", options.epochs)
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}))
      ->capture_default_str();
  app.add_option("--batch", options.batch, "The rows of a global batch")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
      ->capture_default_str();
  app.add_option("--replicas", options.replicas)->check(CLI::Range(1, 64))->capture_default_str();
  app.add_option("--ps", options.ps, "Train with so many parameter servers, in this process")
      ->check(CLI::Range(0, 64))
      ->capture_default_str();
  app.add_option("--workers", options.workers, "With --ps")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Of the table, the order and initial values")
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error) == 0 ? EXIT_SUCCESS : kExitUsage);
  }
  // The texts of the table that is made are not those of others.
  if (!csv->empty() && texts->empty()) options.texts.clear();
  return options;
}

}  // namespace tabular
