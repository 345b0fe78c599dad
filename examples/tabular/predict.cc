// Predicts rows of CSV files with what `tabular` has left in a directory. It knows neither how
// features are made nor how the model was trained: both are in the files.
//
//   build/release/bin/tabular --out run
//   build/release/bin/tabular_predict run new_customers.csv
#include <cohort/cohort.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <string>

#include "input.h"
#include "predictions.h"

namespace tf = cohort;

int main(int argc, char** argv) {
  constexpr int kExitUsage = 64;
  std::string directory, csv;
  tabular::ReadOptions options;
  CLI::App app{"Predicts rows of CSV files with a model that `tabular` has trained."};
  app.add_option("directory", directory, "The --out of tabular")->required();
  app.add_option("csv", csv, "Files with a header, as a path or pattern")->required();
  app.add_option("--na-value", options.na_value, "What stands for a missing value")
      ->capture_default_str();
  app.add_option("--batch", options.batch, "Rows that are predicted at a time")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? EXIT_SUCCESS : kExitUsage;
  }
  return tf::run_program([&] {
    const tf::transform::TFTransformOutput output(directory + "/features");
    const auto model = tf::keras::models::load_model(directory + "/model", {.compile = false});
    const auto rows = tabular::read_table(csv, tabular::columns_of_transform(output), options);
    tabular::print_predictions(model, tabular::features_of(rows, output), output);
  });
}
