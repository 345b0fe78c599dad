// interop_probe COMMAND: reads a JSON request from stdin, writes the JSON answer to stdout.
#include "probe.h"

#include <exception>
#include <iostream>
#include <map>
#include <string>

int main(int argc, char** argv) {
  using namespace cohort::interop;
  const std::map<std::string, Json (*)(const Json&)> commands = {
      {"average_loss", compute_average_loss},
      {"loss", compute_loss},
      {"metric", compute_metric},
      {"optimizer", apply_optimizer},
      {"pipeline", read_pipeline},
      {"training", train_guide_004},
  };
  const auto command = commands.find(argc == 2 ? argv[1] : "");
  if (command == commands.end()) {
    std::cerr << "usage: interop_probe";
    for (const auto& [name, function] : commands) {
      std::cerr << (name == commands.begin()->first ? " " : "|") << name;
    }
    std::cerr << " < request.json\n";
    return 64;
  }
  try {
    std::cout << command->second(Json::parse(std::cin)) << '\n';
  } catch (const std::exception& error) {
    std::cerr << "interop_probe " << command->first << ": " << error.what() << '\n';
    return 1;
  }
  return 0;
}
