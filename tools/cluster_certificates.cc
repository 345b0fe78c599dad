#include <chrono>

#include "cohort/cluster/security/make_certificates.h"
#include "cohort/core/files/file_system.h"
#include "cohort/core/text.h"
#include "tools/cluster_commands.h"

namespace cohort::tools {
namespace {

namespace security = internal::security;

void add_tasks(std::vector<TaskId>& tasks, const char* job, int count) {
  for (int index = 0; index < count; ++index) tasks.push_back({job, index});
}

}  // namespace

int make_cluster_certificates(const CertificatesOptions& options, std::ostream& out) {
  security::CertificateRequest request{.cluster = options.cluster,
                                       .tasks = {},
                                       .directory = options.directory,
                                       .lifetime = std::chrono::days(options.days),
                                       .hosts = options.hosts};
  add_tasks(request.tasks, "chief", options.chief ? 1 : 0);
  add_tasks(request.tasks, "worker", options.workers);
  add_tasks(request.tasks, "ps", options.ps);
  add_tasks(request.tasks, "evaluator", options.evaluator ? 1 : 0);
  const security::MadeCertificates made = security::make_certificates(request);
  for (const std::string& file : made.files) out << file << '\n';
  const distribute::Credentials first =
      security::credentials_in(options.directory, request.tasks.front());
  out << (made.new_authority ? "New authority" : "Same authority as before") << ", "
      << request.tasks.size() + 1 << " certificates for " << options.days
      << " days. Keep ca.key on this host; give each task its own two files and ca.pem, "
      << request.tasks.front() << ' ' << internal::base_name(first.certificate_file) << " and "
      << internal::base_name(first.key_file) << ". It finds them by\n"
      << "  COHORT_CERTIFICATES=" << options.directory << '\n';
  return 0;
}

}  // namespace cohort::tools
