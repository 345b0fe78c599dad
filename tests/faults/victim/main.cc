// checkpoint_victim save DIR VALUE [--overwrite|--manager] [--again] [--async] [--big]
//                                  [--most-file-bytes N]
// checkpoint_victim hold DIR VALUE     (the same flags)
// checkpoint_victim check DIR [--big]
// checkpoint_victim restore PREFIX
// checkpoint_victim serve              these commands, each in a process of its own: server.h
//
// The exit status of an error is 100 + its code: 108 RESOURCE_EXHAUSTED, 115 DATA_LOSS, ...
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "program.h"
#include "server.h"

namespace {

using cohort::InvalidArgumentError;
using cohort::faults::SaveOptions;

constexpr int kExitUsage = 64;
constexpr int kExitOfCode = 100;

SaveOptions parse_save(const std::vector<std::string>& arguments) {
  if (arguments.size() < 3) throw InvalidArgumentError("DIR and VALUE are missing");
  SaveOptions options{.directory = arguments[1], .value = std::stof(arguments[2])};
  for (size_t i = 3; i < arguments.size(); ++i) {
    const std::string& flag = arguments[i];
    if (flag == "--overwrite") {
      options.how = SaveOptions::How::kOverwrite;
    } else if (flag == "--manager") {
      options.how = SaveOptions::How::kManager;
    } else if (flag == "--again") {
      options.again = true;
    } else if (flag == "--async") {
      options.async = true;
    } else if (flag == "--big") {
      options.big = true;
    } else if (flag == "--most-file-bytes" && i + 1 < arguments.size()) {
      options.most_file_bytes = std::stoull(arguments[++i]);
    } else {
      throw InvalidArgumentError("there is no flag '" + flag + "'");
    }
  }
  return options;
}

int run(const std::vector<std::string>& arguments, std::function<void()> ready) {
  try {
    const std::string command = arguments.empty() ? "" : arguments[0];
    const bool has_path = arguments.size() >= 2;
    if (command == "save" || command == "hold") {
      SaveOptions options = parse_save(arguments);
      options.ready = std::move(ready);
      command == "save" ? save(options) : hold(options);
    } else if (command == "check" && has_path) {
      cohort::faults::check(arguments[1], arguments.back() == "--big");
    } else if (command == "restore" && has_path) {
      cohort::faults::measure_restore(arguments[1]);
    } else {
      std::cerr << "usage: checkpoint_victim save|hold|check|restore|serve ...: see main.cc\n";
      return kExitUsage;
    }
    return 0;
  } catch (const cohort::Error& error) {
    std::cerr << code_name(error.code()) << ": " << error.what() << std::endl;
    return kExitOfCode + static_cast<int>(error.code());
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.empty() || arguments[0] != "serve") return run(arguments, [] {});
  cohort::faults::serve(run);
  return 0;
}
