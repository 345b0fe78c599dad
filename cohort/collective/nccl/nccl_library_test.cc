#include "cohort/collective/nccl/nccl_library.h"

#include <gmock/gmock.h>

#include "cohort/core/error.h"
#include "cohort/testing/device/fake_nccl.h"

namespace cohort::collective::nccl {
namespace {

using cohort::testing::fake_nccl;
using cohort::testing::NcclFault;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr const char* kAdvice = "install NVIDIA's libnccl2, or let COHORT_NCCL_LIBRARY name";

TEST(NcclLibrary, IsOpenedByItsPath) {
  const Library library = open_library(fake_nccl());
  int version = 0;
  EXPECT_EQ(library.get_version(&version), kSuccess);
  EXPECT_EQ(version, 22703);
}

TEST(NcclLibrary, ThatIsMissingSaysWhatToDo) {
  EXPECT_THAT([] { open_library("libnccl-of-nobody.so.2"); },
              ThrowsMessage<FailedPreconditionError>(
                  AllOf(HasSubstr("libnccl-of-nobody.so.2"), HasSubstr(kAdvice))));
}

TEST(NcclLibrary, ThatIsAnotherOneSaysWhatItLacks) {
  EXPECT_THAT([] { open_library("libc.so.6"); },
              ThrowsMessage<FailedPreconditionError>(
                  AllOf(HasSubstr("libc.so.6 has no ncclGetVersion"), HasSubstr(kAdvice))));
}

TEST(NcclLibrary, OfAnotherVersionIsRefused) {
  const std::pair<const char*, const char*> versions[] = {
      {"2804", "2.8.4"}, {"21301", "2.13.1"}, {"30000", "3.0.0"}};
  for (const auto& [number, text] : versions) {
    const NcclFault fault("COHORT_FAKE_NCCL_VERSION", number);
    EXPECT_THAT([] { open_library(fake_nccl()); },
                ThrowsMessage<FailedPreconditionError>(
                    AllOf(HasSubstr(internal::str("is NCCL ", text, ";")), HasSubstr(kAdvice))));
  }
}

}  // namespace
}  // namespace cohort::collective::nccl
