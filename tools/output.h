// How the commands write lists, for people and for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

namespace cohort::tools {

// Columns of printable texts, aligned; rows may have any number of them.
void print_table(const std::vector<std::vector<std::string>>& rows, std::ostream& out);

// A number, and of one that JSON has not its name as a text: "inf", "-inf", "nan".
nlohmann::ordered_json number_json(double number);

// ASCII, so that no name can turn a terminal's lines around.
void print_json(const nlohmann::ordered_json& json, std::ostream& out);

}  // namespace cohort::tools
