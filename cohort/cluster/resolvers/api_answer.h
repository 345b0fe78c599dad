// What the APIs of Kubernetes and Google Cloud answer. For sources only: it includes nlohmann-json.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "cohort/cluster/resolvers/http_call.h"

namespace cohort::internal {

// The JSON of an answer with status 200. `source` and the server's own message are in the errors.
// Errors: by status: Unauthenticated (401), PermissionDenied (403), NotFound (404), Aborted (410:
// begin again), Unavailable (429 and 5xx: later), Unknown (others, and what is no JSON).
nlohmann::json parse_answer(std::string_view source, const HttpResponse& response);

// A text within nested objects; nothing where there is none.
std::optional<std::string> text_at(const nlohmann::json& object,
                                   std::initializer_list<const char*> keys);

// The elements of a member; an empty list where it is missing or null.
// Errors: Unknown (it is no list of objects).
nlohmann::json::array_t take_items(std::string_view source, nlohmann::json& object,
                                   const char* key);

// "host:port" of an IP address from an API, with brackets around IPv6.
// Errors: Unknown (it is no address).
std::string address_of(std::string_view source, const std::string& ip, int port);

// Whether names are in order, numbers in them by their value: worker-2 before worker-10.
bool natural_less(std::string_view left, std::string_view right);

}  // namespace cohort::internal
