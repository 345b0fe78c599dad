# What the scripts share. Sourced, never run.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf '== %s\n' "$*" >&2; }

die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 64
}

# Prints the comment that opens the calling script.
show_help_if_asked() {
  case ${1:-} in
    -h | --help)
      awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"
      exit 0
      ;;
  esac
}

# Runs a command up to three times, for what depends on the network.
retry() {
  local attempt
  for attempt in 1 2 3; do
    "$@" && return 0
    say "failed (attempt $attempt of 3): $*"
    sleep $((attempt * 2))
  done
  return 1
}

# Configures a preset; silent where it succeeds. COHORT_WERROR, where the environment has it, decides
# whether warnings are errors.
configure() {
  local log
  log=$(cd "$root" && cmake --preset "$1" ${COHORT_WERROR:+"-DCOHORT_WERROR=$COHORT_WERROR"} 2>&1) || {
    printf '%s\n' "$log" >&2
    return 1
  }
}

# Builds targets of a preset (all targets where none is named).
build() {
  local preset=$1
  shift
  (cd "$root" && cmake --build --preset "$preset" --parallel "$(nproc)" ${1:+--target "$@"})
}

# Installs the Debian packages that a list names and that are missing, without recommended packages.
# Quick where none is. Needs root or sudo, and the network, only where something is missing.
install_packages() {
  local list=$1 wanted installed missing as_root=()
  mapfile -t wanted < <(sed 's/#.*//; s/[[:space:]]//g; /^$/d' "$list")
  command -v dpkg-query >/dev/null ||
    die "this machine has no dpkg; install what $(basename "$list") lists by hand"

  installed=$(dpkg-query --show --showformat '${binary:Package} ${db:Status-Status}\n' |
    sed -n 's/^\([^: ]*\)[^ ]* installed$/\1/p')
  mapfile -t missing < <(printf '%s\n' "${wanted[@]}" | grep -vxFf <(printf '%s\n' "$installed"))
  [[ ${#missing[@]} -gt 0 ]] || return 0

  if [[ $(id -u) != 0 ]]; then
    command -v sudo >/dev/null || die "missing packages, and neither root nor sudo: ${missing[*]}"
    as_root=(sudo)
  fi
  local apt_get=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive
    apt-get -q -o Dpkg::Use-Pty=0)
  say "installing ${missing[*]}"
  retry "${apt_get[@]}" update
  retry "${apt_get[@]}" install --yes --no-install-recommends "${missing[@]}"
}

# Makes a Python environment of what pip is told to install, where it is missing. COMPLETE, if not empty,
# is a command that is given its folder at the end.
make_python_environment() {  # PYTHON FOLDER COMPLETE PIP_ARGUMENT...
  local python=$1 folder=$2 complete=$3 building=$2.building.$$
  shift 3
  [[ ! -x $folder/bin/python ]] || return 0
  say "making the Python environment $folder (once)"
  mkdir -p "$(dirname "$folder")"
  rm -rf "$building"
  "$python" -m venv "$building"
  retry "$building/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
  [[ -z $complete ]] || "$complete" "$building"
  # A name that is only ever a whole environment; whoever comes second throws its own away.
  mv -T "$building" "$folder" 2>/dev/null || rm -rf "$building"
}
