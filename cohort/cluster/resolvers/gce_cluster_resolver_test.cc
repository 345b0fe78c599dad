#include "cohort/cluster/resolvers/gce_cluster_resolver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "cohort/cluster/resolvers/testing_https_server.h"
#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"

namespace cohort::distribute::cluster_resolver {
namespace {

using internal::Gate;
using internal::HttpResponse;
using internal::HttpsServer;
using ::testing::HasSubstr;
using ::testing::Not;

using Request = HttpsServer::Request;

std::string instance(const std::string& name, const std::string& status = "RUNNING") {
  return R"({"instance": "https://www.googleapis.com/compute/v1/projects/p/zones/z/instances/)" +
         name + R"(", "status": ")" + status + R"("})";
}

// The metadata server and the API of one project.
class GceTest : public ::testing::Test {
 protected:
  static HttpResponse give_token(const Request& request) {
    const auto flavor = request.headers.find("metadata-flavor");
    if (flavor == request.headers.end() || flavor->second != "Google" ||
        request.target != "/computeMetadata/v1/instance/service-accounts/default/token") {
      return {403, "no"};
    }
    return {200, R"({"access_token": "ya29.token", "expires_in": 3600, "token_type": "Bearer"})"};
  }

  HttpResponse answer(const Request& request) {
    const auto token = request.headers.find("authorization");
    if (token == request.headers.end() || token->second != "Bearer ya29.token") {
      return {401, R"({"error": {"code": 401, "message": "Invalid Credentials"}})"};
    }
    const std::string zone = "/compute/v1/projects/p/zones/z/";
    const std::string target = request.target;
    if (target.starts_with(zone + "instanceGroups/g/listInstances") && request.method == "POST") {
      return list_(target);
    }
    const std::string instances = zone + "instances/w-";
    if (!target.starts_with(instances)) return {404, R"({"error": {"message": "not found"}})"};
    return {200, R"({"networkInterfaces": [{"networkIP": "10.128.0.)" +
                     target.substr(instances.size()) + R"("}]})"};
  }

  GCEClusterResolverOptions options() const {
    return {.project = "p",
            .zone = "z",
            .instance_group = "g",
            .port = 8470,
            .timeout = std::chrono::seconds(20),
            .metadata_address = metadata_.address(),
            .api_address = api_.address(),
            .ca_file = api_.ca_file()};
  }
  void resolve() const { GCEClusterResolver(options()).cluster_spec(); }

  internal::AnswerToTarget list_;
  HttpsServer metadata_{[](const Request& request) { return give_token(request); }, {.tls = false}};
  HttpsServer api_{[this](const Request& request) { return answer(request); }};
};

TEST_F(GceTest, InstancesAreTasksInTheOrderOfTheirNames) {
  list_ = [](const std::string& target) -> HttpResponse {
    if (target.ends_with("&pageToken=second")) {
      return {200, R"({"items": [)" + instance("w-9") + "]}"};
    }
    return {200, R"({"items": [)" + instance("w-12") + ", " + instance("w-3") +
                     R"(], "nextPageToken": "second"})"};
  };
  GCEClusterResolverOptions ps = options();
  ps.task_type = "ps";
  ps.task_id = 1;
  const GCEClusterResolver resolver(ps);
  EXPECT_EQ(
      resolver.cluster_spec(),
      train::ClusterSpec({{"ps", {"10.128.0.3:8470", "10.128.0.9:8470", "10.128.0.12:8470"}}}));
  EXPECT_EQ(resolver.task_type(), "ps");
  EXPECT_EQ(resolver.task_id(), 1);
  EXPECT_EQ(resolver.master(), "grpc://10.128.0.9:8470");
  EXPECT_EQ(resolver.master("ps", 0, "test"), "test://10.128.0.3:8470");
}

TEST_F(GceTest, NamesWhatIsNotThere) {
  list_ = [](const std::string&) -> HttpResponse {
    return {200, R"({"items": [)" + instance("w-1", "STOPPING") + "]}"};
  };
  EXPECT_EQ(thrown<FailedPreconditionError>([&] { resolve(); }),
            "GCE: instance 'w-1' is not running; it is 'STOPPING'");
  list_ = [](const std::string&) -> HttpResponse { return {200, R"({"kind": "x"})"}; };
  EXPECT_EQ(thrown<FailedPreconditionError>([&] { resolve(); }),
            "GCE: instance group 'g' has no instances");
  list_ = [](const std::string&) -> HttpResponse {
    return {200, R"({"items": [)" + instance("x-1") + "]}"};
  };
  EXPECT_EQ(thrown<NotFoundError>([&] { resolve(); }), "GCE API answers 404: 'not found'");
  list_ = [](const std::string&) -> HttpResponse {
    return {200, R"({"items": [)" + instance("..%2f..") + "]}"};
  };
  EXPECT_THROW(resolve(), UnknownError);
  list_ = [](const std::string&) -> HttpResponse { return {200, R"({"items": {}})"}; };
  EXPECT_THROW(resolve(), UnknownError);
}

TEST_F(GceTest, TheTokenIsNeverPrinted) {
  const HttpsServer other(
      [](const Request&) -> HttpResponse {
        return {200, R"({"access_token": "other.token"})"};
      },
      {.tls = false});
  GCEClusterResolverOptions wrong = options();
  wrong.metadata_address = other.address();
  EXPECT_EQ(thrown<UnauthenticatedError>([&] { GCEClusterResolver(wrong).cluster_spec(); }),
            "GCE API answers 401: 'Invalid Credentials'");
  const HttpsServer none(
      [](const Request&) -> HttpResponse {
        return {200, R"({"access_token": "a b"})"};
      },
      {.tls = false});
  wrong.metadata_address = none.address();
  EXPECT_EQ(thrown<UnknownError>([&] { GCEClusterResolver(wrong).cluster_spec(); }),
            "GCE metadata server: an answer without a token");
  EXPECT_EQ(api_.num_requests(), 1);
}

TEST_F(GceTest, ASlowServerEndsAtTheDeadline) {
  const auto gate = std::make_shared<Gate>();
  list_ = [gate](const std::string&) -> HttpResponse {
    gate->wait();
    return {200, "{}"};
  };
  GCEClusterResolverOptions hurried = options();
  hurried.timeout = std::chrono::milliseconds(300);
  EXPECT_THAT(thrown<DeadlineExceededError>([&] { GCEClusterResolver(hurried).cluster_spec(); }),
              HasSubstr(api_.address()));
  gate->open();
}

TEST_F(GceTest, RefusesOptionsThatNameNothing) {
  const auto problem = [&](auto change) {
    GCEClusterResolverOptions changed = options();
    change(changed);
    return thrown<InvalidArgumentError>([&] { GCEClusterResolver{changed}; });
  };
  EXPECT_EQ(problem([](auto& changed) { changed.project = ""; }), "GCE: project: '' is no name");
  EXPECT_EQ(problem([](auto& changed) { changed.zone = "z/../y"; }),
            "GCE: zone: 'z/../y' is no name");
  EXPECT_EQ(problem([](auto& changed) { changed.port = 0; }),
            "GCE: port: is 0; ports are 1 to 65535");
  EXPECT_THAT(problem([](auto& changed) { changed.api_address = "http://x"; }),
              HasSubstr("must begin with https://"));
}

}  // namespace
}  // namespace cohort::distribute::cluster_resolver
