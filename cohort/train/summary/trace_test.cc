#include "cohort/train/summary/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "cohort/core/error.h"
#include "cohort/core/profiler/phase.h"
#include "cohort/core/profiler/profiler.h"
#include "cohort/core/profiler/xspace.h"
#include "cohort/core/testing_errors.h"
#include "cohort/core/testing_folder.h"
#include "cohort/train/summary/summary_writer.h"
#include "cohort/train/summary/testing_events.h"

namespace cohort::summary {
namespace {

using internal::ScopedPhase;
using ::testing::HasSubstr;

void traced_step() {
  const ScopedPhase compute(profiler::Phase::kCompute);
  {
    const std::string name = "forward: product";
    const internal::ScopedPart part(name);
  }
  internal::count_step();
}

// The only file below `directory` that ends so, as bytes.
std::string file_below(const std::filesystem::path& directory, const std::string& ending) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (!entry.path().string().ends_with(ending)) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  return "";
}

TEST(Trace, WritesTimesAndAProfile) {
  const internal::TemporaryFolder folder;
  const SummaryWriter writer = create_file_writer(folder / "run");
  auto scope = writer.as_default(3);
  trace_on({.profiler = true});
  traced_step();
  trace_export("steps", {.profiler_outdir = folder / "run"});
  scope.close();
  writer.close();
  const std::string profile = file_below(folder.path(), ".xplane.pb");
  for (const char* part : {"/host:CPU", "compute", "forward: product"}) {
    EXPECT_THAT(profile, HasSubstr(part));
  }
  EXPECT_THAT(file_below(folder.path(), ".v2"), HasSubstr("1 steps of"));
}

TEST(Trace, WithoutAWriterWritesTheProfileAlone) {
  const internal::TemporaryFolder folder;
  trace_on({.profiler = true});
  traced_step();
  trace_export("steps", {.profiler_outdir = folder / "run"});
  EXPECT_NE(file_below(folder.path(), ".xplane.pb"), "");
}

TEST(Trace, IsOneAtATime) {
  const internal::TemporaryFolder folder;
  EXPECT_THAT(thrown<FailedPreconditionError>([] { trace_export("none"); }),
              HasSubstr("no trace; call summary::trace_on"));
  trace_off();
  trace_on({.profiler = true});
  trace_on();
  EXPECT_THAT(thrown<InvalidArgumentError>([] { trace_export("steps"); }),
              HasSubstr("profiler_outdir"));
  EXPECT_THROW(profiler::start(), FailedPreconditionError);
  trace_off();
  profiler::start();
  EXPECT_THROW(trace_on(), FailedPreconditionError);
  profiler::stop();
  trace_on();
  trace_export("steps");  // nothing to write, nowhere to write it
}

// tests/interop lets TensorFlow read one.
TEST(XSpace, NamesEachEventOnce) {
  profiler::Profile profile;
  profile.threads.emplace_back().name = "replica_0";
  using std::chrono::nanoseconds;
  profile.threads[0].events = {{profiler::Phase::kCompute, nanoseconds(1), nanoseconds(2)},
                               {profiler::Phase::kCompute, nanoseconds(5), nanoseconds(2)}};
  int names = 0, events = 0;
  const std::string bytes = internal::encode_xspace(profile, "host", {});
  internal::for_each_field(bytes, [&](internal::WireReader& space) {
    if (space.field() != 1) return;
    internal::for_each_field(space.bytes(), [&](internal::WireReader& plane) {
      names += plane.field() == 4 ? 1 : 0;
      if (plane.field() != 3) return;
      internal::for_each_field(
          plane.bytes(), [&](internal::WireReader& line) { events += line.field() == 4 ? 1 : 0; });
    });
  });
  EXPECT_EQ(names, 1);
  EXPECT_EQ(events, 2);
}

}  // namespace
}  // namespace cohort::summary
