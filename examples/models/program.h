// The programs: all train by Model::fit, under the strategy of the command line.
#pragma once

#include <string>

namespace models {

// `main` of the example of that name.
int run_program(const std::string& example, int argc, char** argv);

}  // namespace models
