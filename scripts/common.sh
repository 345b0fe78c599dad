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
