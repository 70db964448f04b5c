# Helpers of .ci/run and .ci/full, which source this file from the repository's root: a step is a command with a time
# limit, counted as passed or failed; `close` prints the end of what each failed step printed, then the counts, and
# ends the script.

passed=0
failed=()
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# wanted NAME...: whether one of these steps is to run: with STEPS set to a regular expression only the steps run whose
# name it matches, and only their tools are fetched.
wanted() {
  local name
  for name; do
    [[ $name =~ ${STEPS:-} ]] && return 0
  done
  return 1
}

# step NAME SECONDS COMMAND...: a step that takes longer has failed.
step() {
  local name=$1 seconds=$2 begin=$SECONDS
  wanted "$name" || return 0
  shift 2
  printf '\n== %s\n' "$name"
  # Not a pipe, which would wait for every process that a step left behind.
  if timeout --kill-after=20 "$seconds" "$@" > >(tee "$scratch/step.out") 2>&1; then
    passed=$((passed + 1))
    printf '== %s: passed in %s s\n' "$name" "$((SECONDS - begin))"
  else
    failed+=("$name: FAILED after $((SECONDS - begin)) s")
    sleep 1
    tail -n 60 "$scratch/step.out" >"$scratch/failed.${#failed[@]}"
    printf '== %s\n' "${failed[-1]}"
  fi
}

skip() {
  printf '\n== %s: skipped, %s\n' "$1" "$2"
}

close() {
  local number
  for ((number = 1; number <= ${#failed[@]}; number++)); do
    printf '\n== the end of %s\n' "${failed[number - 1]}"
    cat "$scratch/failed.$number"
  done
  printf '\n%s passed, %s failed\n' "$passed" "${#failed[@]}"
  [ "${#failed[@]}" -eq 0 ]
  exit
}

# python_with MODULE...: sets `python` to an interpreter that has the modules, installing them into a scratch
# environment when the system's has not.
python_with() {
  local imports
  imports="import $(IFS=,; echo "$*")"
  for python in "$scratch/python/bin/python" python3; do
    "$python" -c "$imports" 2>/dev/null && return 0
  done
  python3 -m venv "$scratch/python" 2>/dev/null || return 1
  python=$scratch/python/bin/python
  timeout 300 "$python" -m pip install --quiet --disable-pip-version-check "${@/#psycopg2/psycopg2-binary}" >"$scratch/pip" 2>&1
  "$python" -c "$imports" 2>/dev/null
}

# want COMMAND PACKAGE: whether the command is there; a missing one is installed from Debian where that is allowed.
want() {
  command -v "$1" >/dev/null && return 0
  command -v apt-get >/dev/null || return 1
  { timeout 120 apt-get update -q && timeout 240 apt-get install -y -q --no-install-recommends "$2"; } >"$scratch/apt" 2>&1
  command -v "$1" >/dev/null
}

# lake_python: sets `python` to an interpreter with PyIceberg, and with DuckDB and its extensions, whose versions must match,
# if they can be had.
lake_python() {
  python3 -m venv "$scratch/lake-python" || return 1
  python=$scratch/lake-python/bin/python
  local pip=("$python" -m pip install --quiet --disable-pip-version-check)
  timeout 400 "${pip[@]}" 'pyiceberg[pyarrow]==0.12.0' || return 1
  timeout 400 "${pip[@]}" duckdb==1.4.4 duckdb-ext-iceberg~=1.4.4 duckdb-ext-avro~=1.4.4 duckdb-ext-httpfs~=1.4.4 || true
}

# simulator FIRST COUNT: runs the seeds of the simulator in two processes, since each uses one core; then a share of them
# with a simulated object store.
simulator() {
  local half=$(($2 / 2)) first status=0
  SIM_FIRST=$1 SIM_SEEDS=$half npx vitest run test/crash/sim.test.ts &
  first=$!
  SIM_FIRST=$(($1 + half)) SIM_SEEDS=$(($2 - half)) npx vitest run test/crash/sim.test.ts || status=$?
  wait "$first" || status=$?
  SIM_FIRST=$1 SIM_STORE_SEEDS=$(($2 / 40)) npx vitest run test/crash/store-sim.test.ts || status=$?
  return "$status"
}
export -f simulator
