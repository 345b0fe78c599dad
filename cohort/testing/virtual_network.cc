#include "cohort/testing/virtual_network.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <thread>
#include <utility>

#include "cohort/cluster/launch/child_process.h"
#include "cohort/core/error.h"
#include "cohort/core/host/unique_fd.h"
#include "cohort/core/text.h"

namespace cohort::testing {
namespace {

using internal::str;
using internal::UniqueFd;

// A fresh network namespace. It lives as long as this descriptor, and processes in it.
UniqueFd make_namespace() {
  UniqueFd fd;
  int error = 0;
  std::thread maker([&] {  // unshare() moves the calling thread alone
    if (::unshare(CLONE_NEWNET) == 0) {
      fd = UniqueFd(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    }
    error = errno;
  });
  maker.join();
  if (fd.valid()) return fd;
  const std::string message =
      str("VirtualNetwork: cannot make a network namespace: ", internal::errno_text(error));
  if (error == EPERM) throw PermissionDeniedError(message + "; it needs root");
  throw ResourceExhaustedError(message);
}

std::vector<std::string> words(std::string_view line) {
  const std::vector<std::string_view> found = internal::split_words(line);
  return {found.begin(), found.end()};
}

// Runs a command of iproute2's within a namespace, and waits for its end: they take milliseconds.
void run(const UniqueFd& network, const std::string& program, const std::string& arguments) {
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw ResourceExhaustedError(str("cannot make a pipe: ", internal::errno_text(errno)));
  }
  const UniqueFd out(ends[0]);
  UniqueFd in(ends[1]);
  internal::ChildProcess child({.program = internal::find_program(program),
                                .arguments = words(arguments),
                                .environment = internal::own_environment(),
                                .stdout_fd = in.get(),
                                .stderr_fd = in.get(),
                                .network_fd = network.get()});
  in.reset();
  std::string output;
  std::array<char, 4096> block;
  for (ssize_t count; (count = ::read(out.get(), block.data(), block.size())) > 0;) {
    output.append(block.data(), static_cast<size_t>(count));
  }
  pollfd ended = {child.pidfd(), POLLIN, 0};
  constexpr int kLongEnough = 10'000;
  if (::poll(&ended, 1, kLongEnough) == 1 && child.poll()->ok()) return;
  throw UnknownError(str("VirtualNetwork: `", program, " ", arguments, "` failed: ", output));
}

// No host has it: what is sent there is lost.
constexpr const char* kNowhere = "02:00:00:00:00:99";

}  // namespace

class VirtualNetwork::Impl {
 public:
  explicit Impl(int num_hosts) {
    if (num_hosts < 1 || num_hosts > 200) {
      throw InvalidArgumentError(str("VirtualNetwork: ", num_hosts, " hosts are not 1 to 200"));
    }
    hub_ = make_namespace();
    run(hub_, "ip", "link add bridge type bridge");
    run(hub_, "ip", "link set bridge up");
    for (int i = 0; i < num_hosts; ++i) add_host(i);
  }

  int size() const { return static_cast<int>(hosts_.size()); }
  int namespace_fd(int host) const { return at(host).get(); }

  static std::string address(int host) { return str("10.77.0.", host + 1); }

  // What `from` sends does not reach `to`.
  void cut(int from, int to, Partition kind) {
    for (const Cut& cut : cuts_) {
      if (cut.from == from && cut.to == to && cut.kind == kind) return;
    }
    // The neighbour's entry, so that not even an ARP request gets through.
    run(at(from), "ip",
        kind == Partition::kSilent
            ? str("neigh replace ", address(to), " lladdr ", kNowhere, " dev net0 nud permanent")
            : str("route replace unreachable ", address(to)));
    cuts_.push_back({from, to, kind});
  }

  void heal() {
    for (const Cut& cut : std::exchange(cuts_, {})) {
      run(at(cut.from), "ip",
          cut.kind == Partition::kSilent ? str("neigh del ", address(cut.to), " dev net0")
                                         : str("route del unreachable ", address(cut.to)));
    }
  }

  void limit_rate(int host, int64_t bits_per_second) {
    if (bits_per_second == 0) {
      run(at(host), "tc", "qdisc del dev net0 root");
      return;
    }
    // What may leave at once, in bytes: as much as the link carries between two ticks of the
    // kernel's clock, or it carries less.
    constexpr int64_t kLeastBurst = 4'000, kTicksPerSecond = 100;
    run(at(host), "tc",
        str("qdisc replace dev net0 root tbf rate ", bits_per_second, "bit burst ",
            std::max(kLeastBurst, bits_per_second / 8 / kTicksPerSecond), " latency 400ms"));
  }

 private:
  struct Cut {
    int from;
    int to;
    Partition kind;
  };

  const UniqueFd& at(int host) const {
    if (host < 0 || host >= size()) {
      throw InvalidArgumentError(
          str("VirtualNetwork: there is no host ", host, "; there are ", size()));
    }
    return hosts_[static_cast<size_t>(host)];
  }

  void add_host(int host) {
    const UniqueFd& network = hosts_.emplace_back(make_namespace());
    const std::string port = str("port", host);
    // The commands run in the hub; the path names the descriptor of this process.
    run(hub_, "ip",
        str("link add ", port, " type veth peer name net0 netns /proc/", ::getpid(), "/fd/",
            network.get()));
    run(hub_, "ip", str("link set ", port, " master bridge up"));
    run(network, "ip", str("addr add ", address(host), "/24 dev net0"));
    run(network, "ip", "link set net0 up");
    run(network, "ip", "link set lo up");
  }

  UniqueFd hub_;
  std::vector<UniqueFd> hosts_;
  std::vector<Cut> cuts_;
};

VirtualNetwork::VirtualNetwork(int num_hosts) : impl_(std::make_unique<Impl>(num_hosts)) {}
VirtualNetwork::~VirtualNetwork() = default;

int VirtualNetwork::size() const { return impl_->size(); }
std::string VirtualNetwork::address(int host) const {
  (void)impl_->namespace_fd(host);  // there is such a host
  return Impl::address(host);
}
int VirtualNetwork::namespace_fd(int host) const { return impl_->namespace_fd(host); }

void VirtualNetwork::partition(const std::vector<int>& a, const std::vector<int>& b,
                               Partition kind) {
  for (int left : a) {
    for (int right : b) {
      impl_->cut(left, right, kind);
      impl_->cut(right, left, kind);
    }
  }
}
void VirtualNetwork::cut_one_way(int from, int to) { impl_->cut(from, to, Partition::kSilent); }
void VirtualNetwork::heal() { impl_->heal(); }
void VirtualNetwork::limit_rate(int host, int64_t bits_per_second) {
  impl_->limit_rate(host, bits_per_second);
}

}  // namespace cohort::testing
