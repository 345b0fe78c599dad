#include "cohort/cluster/resolvers/torchrun_cluster_resolver.h"

#include "cohort/cluster/address.h"
#include "cohort/cluster/known_jobs.h"
#include "cohort/cluster/master_url.h"
#include "cohort/cluster/resolvers/process_variables.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::distribute::cluster_resolver {
namespace {

using internal::str;

constexpr char kTorchrun[] = "torchrun";
constexpr int kTorchrunsPort = 29500;  // MASTER_PORT where nobody chose one

int choose_port(const std::optional<int>& option, const internal::VariableReader& variables) {
  const int master_port = variables.find_number("MASTER_PORT", 0).value_or(kTorchrunsPort);
  const int port =
      option.value_or(variables.find_number("COHORT_RENDEZVOUS_PORT", 0)
                          .value_or(master_port < 65535 ? master_port + 1 : master_port - 1));
  if (port == master_port) {
    throw InvalidArgumentError(
        str("torchrun: the rendezvous port ", port,
            " is MASTER_PORT, where torchrun's own agent listens; choose another one"));
  }
  return port;
}

}  // namespace

TorchrunClusterResolver::TorchrunClusterResolver(const TorchrunClusterResolverOptions& options) {
  const internal::VariableReader variables(options.variables);
  rendezvous_.rank = variables.get_number("RANK", 0, kTorchrun);
  rendezvous_.size = variables.get_number("WORLD_SIZE", 1, kTorchrun);
  if (rendezvous_.rank >= rendezvous_.size) {
    throw InvalidArgumentError(
        str("torchrun: RANK is ", rendezvous_.rank, ", and WORLD_SIZE ", rendezvous_.size));
  }
  const std::string host = variables.get("MASTER_ADDR", kTorchrun);
  // MASTER_ADDR has no brackets around an IPv6 address.
  const bool ipv6 = host.find(':') != std::string::npos && !host.starts_with('[');
  const std::string address =
      str(ipv6 ? "[" + host + "]" : host, ":", choose_port(options.rendezvous_port, variables));
  try {
    rendezvous_.address = to_string(internal::parse_address(address));
  } catch (const InvalidArgumentError& error) {
    throw InvalidArgumentError(
        str("torchrun: MASTER_ADDR and the rendezvous port: ", error.what()));
  }
  task_type_ = internal::kWorker;
  task_id_ = rendezvous_.rank;
  rpc_layer_ = options.rpc_layer;
}

std::string TorchrunClusterResolver::master() const {
  return internal::master_url(rendezvous_.address, rpc_layer_);
}

}  // namespace cohort::distribute::cluster_resolver
