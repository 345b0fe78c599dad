#include "cohort/cluster/resolvers/kubernetes_cluster_resolver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "cohort/cluster/cluster_check.h"
#include "cohort/cluster/resolvers/testing_https_server.h"
#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"

namespace cohort::distribute::cluster_resolver {
namespace {

using internal::Gate;
using internal::HttpResponse;
using internal::HttpsServer;
using internal::str;
using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kToken[] = "a.bearer-token";

std::string pod(const std::string& name, const std::string& number,
                const std::string& phase = "Running") {
  return R"({"metadata": {"name": ")" + name + R"(", "namespace": "ml"},
             "status": {"phase": ")" +
         phase + R"(", "hostIP": "10.0.0.)" + number + R"(", "podIP": "10.1.0.)" + number +
         R"("}})";
}

std::string pod_list(const std::vector<std::string>& pods, const std::string& next = "") {
  std::string items;
  for (const std::string& item : pods) items += (items.empty() ? "" : ", ") + item;
  return R"({"kind": "PodList", "apiVersion": "v1", "metadata": {"continue": ")" + next +
         R"("}, "items": [)" + items + "]}";
}

// As the API server answers a token that it does not know.
constexpr char kUnauthorized[] =
    R"({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "Unauthorized",
        "reason": "Unauthorized", "code": 401})";

// A server that asks for the token and has the pods that a test gives it.
class KubernetesTest : public ::testing::Test {
 protected:
  HttpResponse answer(const HttpsServer::Request& request) {
    const auto token = request.headers.find("authorization");
    if (token == request.headers.end() || token->second != str("Bearer ", kToken)) {
      return {.status = 401, .body = kUnauthorized};
    }
    return pods_(request.target);
  }

  KubernetesClusterResolverOptions options() {
    std::ofstream(token_file_) << kToken << '\n';
    return {.timeout = milliseconds(20'000),
            .api_address = server_.address(),
            .token_file = token_file_,
            .ca_file = server_.ca_file(),
            .variables = Variables{}};
  }

  // Of this test's process.
  std::string token_file_ = ::testing::TempDir() + str("token_", getpid());
  internal::AnswerToTarget pods_;
  HttpsServer server_{[this](const HttpsServer::Request& request) { return answer(request); }};

  ~KubernetesTest() override { std::remove(token_file_.c_str()); }
};

TEST_F(KubernetesTest, PodsAreTasksInTheOrderOfTheirNames) {
  pods_ = [](const std::string&) -> HttpResponse {
    return {200, pod_list({pod("w-10", "3"), pod("w-2", "2"), pod("w-1", "1")})};
  };
  const KubernetesClusterResolver resolver(options());
  EXPECT_EQ(resolver.cluster_spec(),
            train::ClusterSpec({{"worker", {"10.0.0.1:8470", "10.0.0.2:8470", "10.0.0.3:8470"}}}));
  EXPECT_EQ(server_.last_target(), "/api/v1/pods?labelSelector=job-name%3Dtensorflow&limit=500");
  EXPECT_EQ(resolver.master("worker", 1), "grpc://10.0.0.2:8470");
  EXPECT_EQ(resolver.master(), "");
  EXPECT_EQ(resolver.task_type(), std::nullopt);
  KubernetesClusterResolverOptions patient = options();
  patient.timeout = milliseconds::max();
  EXPECT_EQ(KubernetesClusterResolver(patient).cluster_spec().num_tasks(), 3);
}

TEST_F(KubernetesTest, JobsHaveSelectorsAndAPodFindsItself) {
  pods_ = [](const std::string& asked) -> HttpResponse {
    const bool ps = asked.find("role%3Dps") != std::string::npos;
    return {200, ps ? pod_list({pod("p-0", "9")}) : pod_list({pod("w-0", "1"), pod("w-1", "2")})};
  };
  KubernetesClusterResolverOptions two_jobs = options();
  two_jobs.job_to_label_mapping = {{"ps", {"app=t,role=ps"}}, {"worker", {"role=worker"}}};
  two_jobs.tf_server_port = 2222;
  two_jobs.pod_namespace = "ml";
  two_jobs.pod_address = PodAddress::kPod;
  two_jobs.pod_name = "w-1";
  const KubernetesClusterResolver resolver(two_jobs);
  EXPECT_EQ(resolver.task_type(), "worker");
  EXPECT_EQ(resolver.task_id(), 1);
  EXPECT_EQ(internal::check_cluster(resolver).spec,
            train::ClusterSpec(
                {{"ps", {"10.1.0.9:2222"}}, {"worker", {"10.1.0.1:2222", "10.1.0.2:2222"}}}));
  EXPECT_THAT(server_.last_target(), ::testing::StartsWith("/api/v1/namespaces/ml/pods?"));
}

TEST_F(KubernetesTest, ReadsAllPages) {
  pods_ = [](const std::string& asked) -> HttpResponse {
    if (asked.ends_with("&continue=page%202")) return {200, pod_list({pod("w-1", "2")}, "3")};
    if (asked.ends_with("&continue=3")) return {200, pod_list({pod("w-2", "3")})};
    return {200, pod_list({pod("w-0", "1")}, "page 2")};
  };
  EXPECT_EQ(KubernetesClusterResolver(options()).cluster_spec().num_tasks("worker"), 3);
  EXPECT_EQ(server_.num_requests(), 3);
}

TEST_F(KubernetesTest, BeginsAgainWhereAPageHasExpired) {
  std::atomic<bool> expired{false};
  pods_ = [&](const std::string& asked) -> HttpResponse {
    if (asked.find("continue") == std::string::npos) {
      return {200, pod_list({pod("w-0", "1")}, "next")};
    }
    if (!expired.exchange(true)) return {410, R"({"kind": "Status", "reason": "Expired"})"};
    return {200, pod_list({pod("w-1", "2")})};
  };
  EXPECT_EQ(KubernetesClusterResolver(options()).cluster_spec().num_tasks("worker"), 2);
}

TEST_F(KubernetesTest, NamesThePodThatDoesNotRun) {
  const auto resolve = [&] { KubernetesClusterResolver(options()).cluster_spec(); };
  pods_ = [](const std::string&) -> HttpResponse {
    return {200, pod_list({pod("w-0", "1"), pod("w-1", "2", "Pending")})};
  };
  EXPECT_EQ(thrown<FailedPreconditionError>(resolve),
            "Kubernetes: Pod 'w-1' is not running; phase: 'Pending'");
  pods_ = [](const std::string&) -> HttpResponse {
    return {200, pod_list({R"({"metadata": {"name": "w-0", "deletionTimestamp": "2024-01-01"},
                              "status": {"phase": "Running", "hostIP": "10.0.0.1"}})"})};
  };
  EXPECT_EQ(thrown<FailedPreconditionError>(resolve),
            "Kubernetes: Pod 'w-0' is not running; phase: 'Terminating'");
  pods_ = [](const std::string&) -> HttpResponse { return {200, pod_list({})}; };
  EXPECT_EQ(thrown<FailedPreconditionError>(resolve),
            "Kubernetes: no pods have the labels of job 'worker'");
}

TEST_F(KubernetesTest, WaitsForPodsWhereAsked) {
  std::atomic<int> calls{0};
  pods_ = [&](const std::string&) -> HttpResponse {
    if (++calls == 1) return {200, pod_list({pod("w-0", "1")})};
    return {200, pod_list({pod("w-0", "1"), pod("w-1", "2")})};
  };
  KubernetesClusterResolverOptions waiting = options();
  waiting.num_pods = {{"worker", 2}};
  EXPECT_EQ(
      thrown<FailedPreconditionError>([&] { KubernetesClusterResolver(waiting).cluster_spec(); }),
      "Kubernetes: job 'worker' has 1 of 2 pods");
  calls = 0;
  waiting.wait_for_pods = true;
  EXPECT_EQ(KubernetesClusterResolver(waiting).cluster_spec().num_tasks("worker"), 2);
  waiting.num_pods = {{"worker", 3}};
  waiting.timeout = milliseconds(500);
  EXPECT_EQ(
      thrown<DeadlineExceededError>([&] { KubernetesClusterResolver(waiting).cluster_spec(); }),
      "Kubernetes: after 500 ms job 'worker' has 2 of 3 pods");
}

TEST_F(KubernetesTest, ATokenThatIsRefusedIsNeverPrinted) {
  KubernetesClusterResolverOptions wrong = options();
  std::ofstream(token_file_) << "another-token";
  const std::string message =
      thrown<UnauthenticatedError>([&] { KubernetesClusterResolver(wrong).cluster_spec(); });
  EXPECT_EQ(message, "Kubernetes API answers 401: 'Unauthorized'");
  std::ofstream(token_file_) << "two\nlines";
  EXPECT_THAT(
      thrown<FailedPreconditionError>([&] { KubernetesClusterResolver(wrong).cluster_spec(); }),
      AllOf(HasSubstr(token_file_), Not(HasSubstr("lines"))));
  wrong.token_file = "/nowhere/token";
  EXPECT_THROW(KubernetesClusterResolver(wrong).cluster_spec(), FailedPreconditionError);
}

TEST_F(KubernetesTest, AnswersThatAreNoneAreErrors) {
  const auto resolve = [&] { KubernetesClusterResolver(options()).cluster_spec(); };
  pods_ = [](const std::string&) -> HttpResponse {
    return {403, R"({"kind": "Status", "message": "pods is forbidden"})"};
  };
  EXPECT_EQ(thrown<PermissionDeniedError>(resolve),
            "Kubernetes API answers 403: 'pods is forbidden'");
  pods_ = [](const std::string&) -> HttpResponse { return {503, "<html>try later</html>"}; };
  EXPECT_THROW(resolve(), UnavailableError);
  for (const char* body :
       {"", "[]", "{\"items\": 3}", "{\"items\": [3]}", "{\"items\": [{}]}", "{\"items\": [",
        "\xff", R"({"items": [{"metadata": {"name": "w"}, "status": {"phase": "Running"}}]})"}) {
    pods_ = [&](const std::string&) -> HttpResponse { return {200, body}; };
    EXPECT_THROW(resolve(), UnknownError) << body;
  }
  pods_ = [](const std::string&) -> HttpResponse { return {200, pod_list({}, "again")}; };
  EXPECT_THROW(resolve(), UnknownError);
}

TEST_F(KubernetesTest, ASlowServerEndsAtTheDeadline) {
  const auto gate = std::make_shared<Gate>();
  pods_ = [gate](const std::string&) -> HttpResponse {
    gate->wait();
    return {200, pod_list({})};
  };
  KubernetesClusterResolverOptions hurried = options();
  hurried.timeout = milliseconds(200);
  EXPECT_THAT(
      thrown<DeadlineExceededError>([&] { KubernetesClusterResolver(hurried).cluster_spec(); }),
      HasSubstr(server_.address()));
  gate->open();
}

TEST_F(KubernetesTest, AServerThatIsNotTheApisGetsNoToken) {
  const HttpsServer other([](const HttpsServer::Request&) -> HttpResponse { return {200, "{}"}; });
  KubernetesClusterResolverOptions wrong = options();
  wrong.api_address = other.address();
  EXPECT_THROW(KubernetesClusterResolver(wrong).cluster_spec(), UnauthenticatedError);
  const HttpsServer elsewhere(
      [](const HttpsServer::Request&) -> HttpResponse {
        return {200, "{}"};
      },
      {.certified_address = "10.9.8.7"});
  wrong.api_address = elsewhere.address();
  wrong.ca_file = elsewhere.ca_file();
  EXPECT_THROW(KubernetesClusterResolver(wrong).cluster_spec(), UnauthenticatedError);
  EXPECT_EQ(other.num_requests() + elsewhere.num_requests(), 0);
  wrong.ca_file = "/nowhere/ca.crt";
  EXPECT_THROW(KubernetesClusterResolver(wrong).cluster_spec(), InvalidArgumentError);
  wrong.api_address = "http://127.0.0.1:1";
  EXPECT_THROW(KubernetesClusterResolver{wrong}, InvalidArgumentError);
}

TEST_F(KubernetesTest, FindsTheApiInThePodsEnvironment) {
  pods_ = [](const std::string&) -> HttpResponse { return {200, pod_list({pod("w", "1")})}; };
  KubernetesClusterResolverOptions in_pod = options();
  const std::string port = in_pod.api_address.substr(in_pod.api_address.rfind(':') + 1);
  in_pod.api_address = "";
  EXPECT_THAT(thrown<FailedPreconditionError>([&] { KubernetesClusterResolver{in_pod}; }),
              HasSubstr("KUBERNETES_SERVICE_HOST is not set"));
  in_pod.variables = {{"KUBERNETES_SERVICE_HOST", "127.0.0.1"}, {"KUBERNETES_SERVICE_PORT", port}};
  EXPECT_EQ(KubernetesClusterResolver(in_pod).cluster_spec().num_tasks(), 1);
}

}  // namespace
}  // namespace cohort::distribute::cluster_resolver
