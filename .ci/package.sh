#!/usr/bin/env bash
# Tests the package as npm publishes it, installed in an empty folder: it is small and complete, and installs without
# warnings; `npx penstock start` answers within 3 s, serves what needs npm packages that the build has packed into
# dist/, and stops cleanly when npx gets SIGTERM.
set -uo pipefail
cd "$(dirname "$0")/.."
repository=$PWD
scratch=$(mktemp -d)
failures=0
launcher=
server=

cleanup() {
  for pid in $launcher $server; do kill -KILL "$pid" 2>/dev/null; done
  cd "$repository" || return
  rm -rf "$scratch"
  # A package holds programs alone: what other steps run has to be built again.
  node deploy/penstock.js build
}
trap cleanup EXIT

# check NAME COMMAND...
check() {
  local name=$1
  shift
  if "$@" >"$scratch/out" 2>&1; then printf 'ok      %s\n' "$name"; else
    printf 'FAILED  %s\n' "$name"
    head -20 "$scratch/out"
    failures=$((failures + 1))
  fi
}

npm pack --silent --pack-destination "$scratch" >"$scratch/pack" 2>&1 || {
  cat "$scratch/pack"
  exit 1
}
mkdir "$scratch/empty"
cd "$scratch/empty" || exit 1
npm install --no-audit --no-fund "$scratch"/penstock-*.tgz >"$scratch/install" 2>&1 || {
  cat "$scratch/install"
  exit 1
}
kilobytes=$(du -sk node_modules | cut -f1)
echo "node_modules: $kilobytes KB"

no_warnings() { ! grep -i 'warn' "$scratch/install"; }
licence_texts() {
  local texts=node_modules/penstock/dist/THIRD-PARTY-LICENSES.txt
  grep -q '^@dsnp/parquetjs .*: MIT' "$texts" && grep -q '^node-rsa .*: MIT' "$texts" && grep -q 'Tom Wu' "$texts" &&
    awk '
      /^-+$/ && length($0) == 80 { if (lines < 5) bad = 1; lines = 0; next }
      NF { lines++ }
      END { exit bad || lines < 5 }
    ' "$texts"
}
no_aws() { ! ls -d node_modules/@aws-sdk node_modules/@smithy node_modules/@dsnp 2>/dev/null; }
no_sources() { ! find node_modules/penstock -name '*.ts' -path '*/engine/*' | grep . && [ ! -e node_modules/penstock/dist/test ]; }
check 'npm install warns of nothing' no_warnings
check 'node_modules has less than 25 MB' test "$kilobytes" -lt 25000
check 'no AWS SDK' no_aws
check 'programs alone in dist/' no_sources
for file in docs/settings.md dist/docs/index.html gateways/docs/page/docs.js README.md LICENSE CHANGELOG.md dist/THIRD-PARTY-LICENSES.txt; do
  check "$file comes along" test -s "node_modules/penstock/$file"
done
commit=$(git -C "$repository" rev-parse --short=12 HEAD 2>/dev/null) &&
  check '--version names the commit' grep -q "(commit $commit)" <(npx penstock --version)
check 'the licence of each packed package' licence_texts

port() { sed -n "s/^  $1  *.*:\([0-9]*\)$/\1/p" "$scratch/server"; }

# begin_server: sets milliseconds to the time from the command until a query is answered.
begin_server() {
  local begin sets=()
  for key in http.net.bind.to http.min.net.bind.to line.tcp.net.bind.to pg.net.bind.to; do sets+=(--set "$key=127.0.0.1:0"); done
  begin=$(date +%s%3N)
  npx penstock start -d "$scratch/root" "${sets[@]}" >"$scratch/server" 2>&1 &
  launcher=$!
  for _ in $(seq 600); do
    if [ -n "$(port http)" ] && curl -sf -o /dev/null "http://127.0.0.1:$(port http)/exec?query=select+1"; then
      milliseconds=$(($(date +%s%3N) - begin))
      server=$(pgrep -f "bin/penstock start -d $scratch/root" | tail -1)
      return 0
    fi
    kill -0 "$launcher" 2>/dev/null || break
    sleep 0.05
  done
  cat "$scratch/server"
  return 1
}

# SIGTERM ends npx, and the shell between it and the server, at once.
stops_cleanly() {
  kill -TERM "$launcher"
  wait "$launcher"
  for _ in $(seq 300); do
    kill -0 "$server" 2>/dev/null || break
    sleep 0.1
  done
  grep -h . "$scratch/root/log/"*.log | tail -1 | grep 'server ended'
}

# One start in three: other work on this machine may slow the others down. Leaves the last server running.
answers_soon() {
  local attempt busy
  for attempt in 1 2 3; do
    begin_server || return 1
    echo "answers after $milliseconds ms"
    [ "$milliseconds" -le 3000 ] && return 0
    [ "$attempt" -eq 3 ] || stops_cleanly || return 1
  done
  busy=$(awk -v cpus="$(nproc)" '{ print ($1 > cpus) }' /proc/loadavg)
  [ "$busy" -eq 1 ] && echo 'but this machine is busy'
}

check 'npx penstock start answers within 3 s' answers_soon
echo "after $milliseconds ms"
url="http://127.0.0.1:$(port http)"
health="http://127.0.0.1:$(port health)"
exec_sql() { curl -sfG "$url/exec" --data-urlencode "query=$1"; }

# Each loads a package that lies in dist/packed/.
metrics() { curl -sf "$health/metrics" | grep '^svc_process_cpu_seconds_total'; }
import_csv() {
  printf 'city,ts,v\nOslo,2026-01-01T00:00:00.000Z,1\nRome,2026-01-02T00:00:00.000Z,2\n' >"$scratch/cities.csv"
  curl -sf -F "data=@$scratch/cities.csv" "$url/imp?name=cities&timestamp=ts&partitionBy=DAY&fmt=json" && exec_sql 'select count() from cities' | grep '\[\[2\]\]'
}
export_parquet() { npx penstock export --url "$url" cities -o "$scratch/cities.parquet" && head -c 4 "$scratch/cities.parquet" | grep PAR1; }
console() { curl -sf "$url/console/" | grep -i '<title>' && curl -sf -o /dev/null "$url/console/console.js" "$url/console/uplot.css"; }
tool() { npx penstock sql --url "$url" -e 'select city from cities' | grep Rome; }
check 'metrics' metrics
check 'import of CSV' import_csv
check 'export as Parquet' export_parquet
check 'the console' console
check 'npx penstock sql' tool
check 'SIGTERM to npx ends the server, which stops cleanly' stops_cleanly
check 'the process has ended' bash -c '! kill -0 "$1" 2>/dev/null' - "$server"
embedded() {
  cat >"$scratch/empty/embedded.mjs" <<'EOF'
import { open } from 'penstock'
const db = await open(process.argv[2])
await db.ingestLines('weather,city=Oslo temperature=3.5')
console.log(await (await db.query('SELECT city, temperature FROM weather')).rows())
await db.close()
EOF
  node embedded.mjs "$scratch/embedded" 2>&1 | grep -Fx "[ { city: 'Oslo', temperature: 3.5 } ]"
}
check 'a database embedded in a program' embedded
check 'types of the embedded database' test -s node_modules/penstock/dist/deploy/embedded/api.d.ts
check 'npx penstock check finds no damage' npx penstock check -d "$scratch/root"
[ "$failures" -eq 0 ]
