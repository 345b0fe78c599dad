#include "cohort/cluster/rpc/dispatcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/core/program/task.h"
#include "cohort/core/testing_errors.h"

namespace cohort::internal::rpc {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string bytes_of(MessageWriter writer) {
  std::string bytes;
  for (; !writer.piece().empty(); writer.advance()) {
    for (const Bytes& slice : writer.piece()) bytes.append(slice.data, slice.size);
  }
  return bytes;
}

std::string request_bytes(const TaskId& task, Message message = {}, int64_t generation = 0) {
  return bytes_of({{.claim = {task, 1, generation}}, std::move(message)});
}

Bytes bytes_from(const std::string& text) {
  auto owner = std::make_shared<std::string>(text);
  return {owner, owner->data(), owner->size()};
}

// What a caller makes of an answer: the control bytes, or the error.
std::string outcome(const std::string& bytes) {
  MessageReader reader("answer",
                       [](const Header&) { return MessageReader::Limits{.bulk_bytes = 1 << 20}; });
  reader.append(bytes);
  reader.expect_complete();
  if (reader.header().error.empty()) return reader.take().control;
  const ErrorRecord record = record_error(decode_error(reader.header().error));
  return str(code_name(record.code), " from ", record.task, ": ", record.message);
}

class ScriptedService : public Service {
 public:
  using Handler = std::function<void(std::unique_ptr<Call>)>;
  explicit ScriptedService(Handler handler) : handler_(std::move(handler)) {}
  std::string_view name() const override { return "store"; }
  std::span<const MethodSpec> methods() const override { return kMethods; }
  void handle(size_t method, std::unique_ptr<Call> call) override {
    last_method = method;
    handler_(std::move(call));
  }
  size_t last_method = 99;

 private:
  static constexpr MethodSpec kMethods[] = {
      {.name = "read", .callers = kEverybody, .fenced = false},
      {.name = "write", .callers = Role::kWorker | Role::kCoordinator, .max_bulk_bytes = 100},
      {.name = "short", .callers = kEverybody, .max_control_bytes = 10},
  };
  const Handler handler_;
};

std::optional<Role> role_of(const TaskId& task) {
  if (task.job == "worker") return Role::kWorker;
  if (task.job == "ps") return Role::kPs;
  return std::nullopt;
}

struct DispatcherTest : ::testing::Test {
  DispatcherTest() { dispatcher.add(service); }

  std::shared_ptr<Session> begin(std::string_view method, const Peer& peer = {"1.2.3.4:5"}) {
    answers.clear();
    return dispatcher.begin(
        method, peer, steady_clock::now() + seconds(60),
        [this](MessageWriter writer) { answers.push_back(outcome(bytes_of(std::move(writer)))); });
  }
  // The answer to a whole request.
  std::string call(std::string_view method, const std::string& bytes,
                   const Peer& peer = {"1.2.3.4:5"}) {
    const auto session = begin(method, peer);
    session->append(bytes);
    session->end_of_request();
    return answers.size() == 1 ? answers[0] : str(answers.size(), " answers");
  }

  ScriptedService::Handler handler = [](std::unique_ptr<Call> call) {
    call->reply({.control = str("to ", call->caller().task)});
  };
  std::shared_ptr<ScriptedService> service = std::make_shared<ScriptedService>(
      [this](std::unique_ptr<Call> call) { handler(std::move(call)); });
  Dispatcher dispatcher{
      {.self = {"ps", 0}, .role_of = role_of, .max_bulk_bytes = 150, .max_header_bytes = 5000}};
  std::vector<std::string> answers;
  const TaskId worker{"worker", 2};
};

TEST_F(DispatcherTest, CallsTheMethodThatIsNamed) {
  EXPECT_EQ(call("store/write", request_bytes(worker)), "to /job:worker/task:2");
  EXPECT_EQ(service->last_method, 1U);
  handler = [](std::unique_ptr<Call> call) {
    call->reply({.control = Task::current().to_string()});  // a handler acts for its server
  };
  EXPECT_EQ(call("store/read", request_bytes(worker)), "/job:ps/task:0");
}

TEST_F(DispatcherTest, BytesMayComeInAnyCut) {
  handler = [](std::unique_ptr<Call> call) {
    const Message& message = call->request();
    std::string text = message.control;
    for (const Bytes& bytes : message.bulk) text += "|" + std::string(bytes.data, bytes.size);
    call->reply({.control = text});
  };
  const std::string whole = request_bytes(
      worker, {.control = "fields", .bulk = {bytes_from("abc"), {}, bytes_from("defgh")}});
  for (size_t cut = 1; cut < whole.size(); ++cut) {
    const auto session = begin("store/write");
    for (size_t at = 0; at < whole.size(); at += cut) {
      session->append(std::string_view(whole).substr(at, cut));
    }
    session->end_of_request();
    EXPECT_THAT(answers, ElementsAre("fields|abc||defgh")) << cut;
  }
}

TEST_F(DispatcherTest, RefusesStrangersRolesAndNames) {
  EXPECT_EQ(call("store/nothing", request_bytes(worker)),
            "NOT_FOUND from /job:ps/task:0: /job:ps/task:0 has no method 'store/nothing'; its "
            "services are: store");
  EXPECT_THAT(
      call("store/write", request_bytes({"ps", 1})),
      HasSubstr("PERMISSION_DENIED from /job:ps/task:0: /job:ps/task:1 at 1.2.3.4:5 may not "
                "call store/write of /job:ps/task:0: its role is ps"));
  EXPECT_THAT(call("store/read", request_bytes({"nobody", 0})), HasSubstr("is no task"));
  EXPECT_THAT(call("store/read", request_bytes({})), HasSubstr("UNAUTHENTICATED"));
  EXPECT_EQ(service->last_method, 99U);
}

TEST_F(DispatcherTest, ACertificateCountsForMoreThanAWord) {
  const Peer proved{.address = "1.2.3.4:5", .task = TaskId{"worker", 2}};
  EXPECT_EQ(call("store/read", request_bytes({}), proved), "to /job:worker/task:2");
  EXPECT_THAT(
      call("store/read", request_bytes({"ps", 1}), proved),
      HasSubstr("PERMISSION_DENIED from /job:ps/task:0: the caller at 1.2.3.4:5 says that it "
                "is '/job:ps/task:1', but its certificate is /job:worker/task:2's"));
}

TEST_F(DispatcherTest, RefusesWhatIsTooLargeBeforeItComes) {
  const std::string big =
      request_bytes(worker, {.control = "", .bulk = {bytes_from(std::string(101, 'x'))}});
  const auto session = begin("store/write");
  session->append(std::string_view(big).substr(0, big.size() - 101));  // the header alone
  EXPECT_THAT(answers, ElementsAre(HasSubstr("RESOURCE_EXHAUSTED")));
  EXPECT_THAT(call("store/short", request_bytes(worker, {.control = std::string(11, 'x')})),
              HasSubstr("at most 10 are taken"));
  EXPECT_THAT(call("store/read", "\xff\xff\xff\xff"), HasSubstr("RESOURCE_EXHAUSTED"));
}

TEST_F(DispatcherTest, AllCallsTogetherHaveALimit) {
  std::unique_ptr<Call> kept;
  handler = [&](std::unique_ptr<Call> call) { kept = std::move(call); };
  const std::string bytes =
      request_bytes(worker, {.control = "", .bulk = {bytes_from(std::string(100, 'x'))}});
  EXPECT_EQ(call("store/write", bytes), "0 answers");
  EXPECT_THAT(call("store/write", bytes), HasSubstr("exceed its limit of 150"));
  kept->reply({});
  kept.reset();
  EXPECT_EQ(call("store/write", bytes), "0 answers");
}

TEST_F(DispatcherTest, DamagedRequestsAreDataLoss) {
  const std::string whole =
      request_bytes(worker, {.control = "fields", .bulk = {bytes_from("abcdef")}});
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THAT(call("store/write", whole.substr(0, size)), HasSubstr("was cut short")) << size;
  }
  EXPECT_THAT(call("store/write", whole + "x"), HasSubstr("bytes follow its end"));
}

TEST_F(DispatcherTest, EveryCallIsAnsweredOnce) {
  handler = [](std::unique_ptr<Call>) {};
  EXPECT_THAT(call("store/read", request_bytes(worker)), HasSubstr("INTERNAL"));
  handler = [](std::unique_ptr<Call>) { throw AbortedError("no", "/job:worker/task:7"); };
  EXPECT_EQ(call("store/read", request_bytes(worker)), "ABORTED from /job:worker/task:7: no");
  handler = [](std::unique_ptr<Call> call) {
    call->reply({.control = "first"});
    call->reply({.control = "second"});
    throw AbortedError("third");
  };
  EXPECT_EQ(call("store/read", request_bytes(worker)), "first");
}

// A size of a header and nothing after it.
std::string size_bytes(uint32_t size) {
  std::string bytes(4, '\0');
  for (size_t i = 0; i < 4; ++i) bytes[i] = static_cast<char>(size >> (8 * i));
  return bytes;
}

TEST_F(DispatcherTest, HeadersThatTheMethodDoesNotTakeAreRefusedByTheirSize) {
  const auto session = begin("store/short");  // 10 control bytes, no bulk
  session->append(size_bytes(4096));
  EXPECT_FALSE(session->wants_more());
  EXPECT_THAT(answers, ElementsAre(HasSubstr("its header has 4096 bytes; at most 1034")));
  const auto other = begin("store/read");
  other->append(size_bytes(4096));
  EXPECT_TRUE(other->wants_more());
}

TEST_F(DispatcherTest, TensorsWithoutBytesAreCounted) {
  const std::vector<Bytes> none(kMaxBulks + 1);
  // The sizes of one more than there may be, all 0: field 2, of that many bytes.
  const std::string sizes = std::string("\x12\x81\x20", 3) + std::string(kMaxBulks + 1, '\0');
  EXPECT_THAT(call("store/write", size_bytes(static_cast<uint32_t>(sizes.size())) + sizes),
              HasSubstr("more than the 4096 tensors"));
  EXPECT_THAT(call("store/read", request_bytes(worker, {.control = "", .bulk = {{}}})),
              HasSubstr("more than the 0 tensors"));
  expect_error<ResourceExhaustedError>([&] { MessageWriter({}, {.control = "", .bulk = none}); },
                                       "4097 tensors");
}

TEST_F(DispatcherTest, HeadersCountFromTheirSizeOn) {
  const auto half = begin("store/read");
  half->append(size_bytes(4000));
  EXPECT_TRUE(half->wants_more());
  const auto more = begin("store/read");
  more->append(size_bytes(4000));
  EXPECT_THAT(answers, ElementsAre(HasSubstr("is receiving 4000 bytes; another 4000")));
}

TEST_F(DispatcherTest, CancelledCallsTellTheService) {
  std::unique_ptr<Call> kept;
  int cancelled = 0;
  handler = [&](std::unique_ptr<Call> call) {
    call->on_cancel([&] { ++cancelled; });
    kept = std::move(call);
  };
  const auto session = begin("store/read");
  session->append(request_bytes(worker));
  session->end_of_request();
  EXPECT_TRUE(session->cancel());
  EXPECT_EQ(cancelled, 1);
  kept->on_cancel([&] { ++cancelled; });  // too late: called at once
  EXPECT_EQ(cancelled, 2);
  kept->reply({.control = "nobody hears it"});
  EXPECT_TRUE(answers.empty());
  EXPECT_FALSE(session->cancel());
}

class OddGenerations : public Fence {
 public:
  void check(const Caller& caller) const override {
    if (caller.generation % 2 == 0) throw AbortedError(str("generation ", caller.generation));
  }
};

TEST_F(DispatcherTest, AFenceKeepsOthersOut) {
  dispatcher.set_fence(std::make_shared<OddGenerations>());
  EXPECT_THAT(call("store/write", request_bytes(worker, {}, 2)), HasSubstr("generation 2"));
  EXPECT_EQ(call("store/write", request_bytes(worker, {}, 3)), "to /job:worker/task:2");
  EXPECT_EQ(call("store/read", request_bytes(worker, {}, 2)), "to /job:worker/task:2");  // unfenced
}

TEST_F(DispatcherTest, CallsNeedDeadlines) {
  std::string answer;
  dispatcher.begin("store/read", {"1.2.3.4:5"}, steady_clock::time_point::max(),
                   [&](MessageWriter writer) { answer = outcome(bytes_of(std::move(writer))); });
  EXPECT_THAT(answer, HasSubstr("has no deadline"));
}

TEST_F(DispatcherTest, TakesServicesWithProperNamesOnce) {
  expect_error<AlreadyExistsError>([&] { dispatcher.add(service); }, "'store' already");
  dispatcher.stop();
  EXPECT_THAT(call("store/read", request_bytes(worker)), HasSubstr("CANCELLED"));
  expect_error<FailedPreconditionError>([&] { dispatcher.add(service); }, "has stopped");
}

struct ClosingFence : Fence {
  void check(const Caller&) const override {
    if (closed) throw AbortedError("fenced, generation 2");
  }
  bool closed = false;
};

TEST_F(DispatcherTest, TheFenceIsAskedAgainOnceAllHasCome) {
  const auto fence = std::make_shared<ClosingFence>();
  dispatcher.set_fence(fence);
  const std::string request =
      request_bytes({"worker", 0}, {.control = "", .bulk = {bytes_from("slow bulk")}});
  const auto session = begin("store/write");
  session->append(request.substr(0, request.size() - 1));
  EXPECT_TRUE(session->wants_more());
  fence->closed = true;
  session->append(request.substr(request.size() - 1));
  session->end_of_request();
  EXPECT_THAT(answers, ElementsAre(HasSubstr("fenced, generation 2")));
  EXPECT_EQ(service->last_method, 99U);
}

}  // namespace
}  // namespace cohort::internal::rpc
