// interop_probe COMMAND: answers JSON requests from stdin on stdout, one a line, until stdin ends.
// A request that fails is answered by {"failed": text}.
#include "probe.h"

#include <exception>
#include <iostream>
#include <map>
#include <string>

namespace {

using cohort::interop::Json;

Json answer(Json (*command)(const Json&), const std::string& request) {
  try {
    return command(Json::parse(request));
  } catch (const std::exception& error) {
    return {{"failed", error.what()}};
  }
}

}  // namespace

int main(int argc, char** argv) {
  using namespace cohort::interop;
  const std::map<std::string, Json (*)(const Json&)> commands = {
      {"average_loss", compute_average_loss},
      {"batch_features", batch_features},
      {"batch_sequences", batch_sequences},
      {"average_variables", average_variables},
      {"build_examples", build_examples},
      {"build_sequence_examples", build_sequence_examples},
      {"checkpoint", use_checkpoint},
      {"constraint", constrain},
      {"distributed", read_distributed},
      {"divide_batch", divide_batch},
      {"example", train_example},
      {"fit_with_tensor_board", fit_with_tensor_board},
      {"image", use_images},
      {"keras_layer", run_keras_layer},
      {"layer", run_layer},
      {"model", use_model},
      {"weights", use_weights},
      {"learning_rates", compute_learning_rates},
      {"lookup", look_up},
      {"loss", compute_loss},
      {"metric", compute_metric},
      {"nn", call_nn},
      {"normalization", adapt_normalization},
      {"optimizer", apply_optimizer},
      {"pad_sequences", pad},
      {"parse_examples", parse_examples},
      {"parse_records", parse_records},
      {"pipeline", read_pipeline},
      {"prometheus_text", prometheus_text},
      {"preprocess", preprocess},
      {"read_image_directory", read_image_directory},
      {"read_records", read_records},
      {"read_text_directory", read_text_directory},
      {"read_timeseries", read_timeseries},
      {"reduce", reduce_values},
      {"sample_by_weights", sample_by_weights},
      {"scale_losses", scale_losses},
      {"sequence_layer", run_sequence_layer},
      {"trace_steps", trace_steps},
      {"training", train_guide_004},
      {"transform", transform_columns},
      {"write_records", write_records},
      {"write_summaries", write_summaries},
  };
  const auto command = commands.find(argc == 2 ? argv[1] : "");
  if (command == commands.end()) {
    std::cerr << "usage: interop_probe COMMAND < requests, where COMMAND is one of:";
    for (const auto& [name, function] : commands) std::cerr << ' ' << name;
    std::cerr << '\n';
    return 64;
  }
  for (std::string request; std::getline(std::cin, request);) {
    std::cout << answer(command->second, request) << std::endl;
  }
  return 0;
}
