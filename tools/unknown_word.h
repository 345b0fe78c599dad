// Finds the word of a call that the command does not know, where the parser's own message would name
// another one: of `cohort launch --worker 2 -- true` it says that `true` was not expected.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

namespace cohort::tools {

// What is wrong with the first option or command that `app` does not know, with a name that it may have
// been meant for. Empty: it knows them all. `arguments` come without the program's name.
std::string explain_unknown_word(const CLI::App& app, const std::vector<std::string>& arguments);

// "cohort launch": the command that the arguments ask for, as far as it is known.
std::string name_of_command(const CLI::App& app, const std::vector<std::string>& arguments);

}  // namespace cohort::tools
