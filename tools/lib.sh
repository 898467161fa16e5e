# shellcheck shell=bash
# What tools/demo, tools/test and tools/bless share. Sourced; does nothing by itself.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
jobs=$(nproc)
export DEBIAN_FRONTEND=noninteractive

say() { printf '\n== %s\n' "$*"; }

# packages_of SECTION… : the package names of these sections of packages.txt.
packages_of() {
  local section
  for section in "$@"; do
    sed -n "/^\[$section\]\$/,/^\[/p" "$root/packages.txt" | grep -E '^[a-z0-9]' || true
  done
}

# Those of the given packages that are not there. A command of the package's name, wherever it came from, counts as there.
missing_of() {
  local package
  for package in "$@"; do
    command -v "$package" >/dev/null && continue
    [[ $(dpkg-query -W -f '${Status}' "$package" 2>/dev/null) == 'install ok installed' ]] && continue
    printf '%s\n' "$package"
  done
}

# need SECTION… : install what is missing of these sections, or say what to install and stop.
need() {
  local wanted missing as_root=()
  mapfile -t wanted < <(packages_of "$@")
  if ! command -v dpkg-query >/dev/null; then
    say "No dpkg here. Going on; these Debian packages, or what your system calls them, must be there: ${wanted[*]}"
    return
  fi
  mapfile -t missing < <(missing_of "${wanted[@]}")
  if [[ ${#missing[@]} -eq 0 ]]; then
    say "All ${#wanted[@]} packages are there"
    return
  fi
  if [[ $(id -u) -ne 0 ]]; then
    if ! command -v sudo >/dev/null || ! sudo -n true 2>/dev/null; then
      say "Packages are missing and installing them needs root. Please run, then start this again:"
      printf '   sudo apt-get update && sudo apt-get install -y --no-install-recommends %s\n' "${missing[*]}"
      exit 1
    fi
    as_root=(sudo -n env DEBIAN_FRONTEND=noninteractive)
  fi
  say "Installing ${missing[*]}"
  "${as_root[@]}" apt-get update -q
  "${as_root[@]}" apt-get install -q -y --no-install-recommends "${missing[@]}"
}

# build PRESET [TARGET…] : configure and build.
build() {
  local preset=$1
  shift
  say "Building $preset${*:+: $*}"
  cmake -S "$root" --preset "$preset" >"$root/build/$preset.configure.log" 2>&1 || {
    cat "$root/build/$preset.configure.log"
    return 1
  }
  cmake --build "$root/build/$preset" --parallel "$jobs" ${1:+--target "$@"}
}

mkdir -p "$root/build"
cd "$root" || exit 1
