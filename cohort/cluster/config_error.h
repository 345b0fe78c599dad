// Reports mistakes in a cluster's configuration: one line that names the source of the
// configuration and the JSON path of the mistake.
//
//   TF_CONFIG: cluster.worker[1]: 'host:0' has the port '0'; ports are 1 to 65535
#pragma once

#include <string>
#include <string_view>

namespace cohort::internal {

// The text in quotation marks. A long text is cut, so that it fits on a line.
std::string quoted_start(std::string_view text);

// A step of a JSON path: "cluster" + json_member("worker") + json_element(1).
std::string json_member(std::string_view key);
std::string json_element(int index);

// Errors: always InvalidArgument, with the text "source: path: problem".
[[noreturn]] void throw_config_error(std::string_view source, std::string_view path,
                                     std::string_view problem);

}  // namespace cohort::internal
