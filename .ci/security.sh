#!/usr/bin/env bash
# TLS and credentials as tools from outside see them: for each kind of key store a server with TLS on all four ports, asked
# by openssl s_client and curl; a certificate that is replaced while the server runs; refusals without and with wrong
# credentials; a start that security.strict refuses. JKS is tried where keytool is.
set -uo pipefail
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
server=
failures=0

end_server() {
  [ -n "$server" ] && kill "$server" 2>/dev/null && wait "$server" 2>/dev/null
  server=
}
trap 'end_server; rm -rf "$scratch"' EXIT

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

certificate() { # certificate NAME
  openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj "/CN=$1" -addext 'subjectAltName=DNS:localhost,IP:127.0.0.1' \
    -keyout "$scratch/$1.key" -out "$scratch/$1.crt" 2>/dev/null
}

begin_server() { # begin_server SETTING...
  local sets=()
  for set in "$@" http.net.bind.to=127.0.0.1:0 http.min.net.bind.to=127.0.0.1:0 line.tcp.net.bind.to=127.0.0.1:0 \
    pg.net.bind.to=127.0.0.1:0 memory.bytes=600m http.user=root http.password=s3cret; do sets+=(--set "$set"); done
  rm -rf "$scratch/root"
  node dist/deploy/cli.js start -d "$scratch/root" "${sets[@]}" >"$scratch/server" 2>&1 &
  server=$!
  for _ in $(seq 150); do
    grep -q Ctrl-C "$scratch/server" && return 0
    kill -0 "$server" 2>/dev/null || break
    sleep 0.2
  done
  cat "$scratch/server"
  return 1
}

port() { sed -n "s/^  $1  *.*:\([0-9]*\)$/\1/p" "$scratch/server"; }

tls_settings() { # tls_settings PATH PASSWORD
  for prefix in http http.min line.tcp pg; do
    echo "$prefix.security.enabled=true $prefix.security.keystore.path=$1 $prefix.security.keystore.password=$2"
  done
}

subject() { # subject PORT [s_client option]...: of the certificate shown there
  local port=$1
  shift
  openssl s_client -connect "127.0.0.1:$port" "$@" </dev/null 2>/dev/null | openssl x509 -noout -subject
}
shows() { subject "${@:2}" | grep -q "$1"; }
status_is() { [ "$(curl -s -o /dev/null -w '%{http_code}' "${@:2}")" = "$1" ]; }
no_old_tls() { ! openssl s_client -connect "127.0.0.1:$(port http)" -tls1_1 </dev/null 2>&1 | grep -q 'Cipher is [A-Z]'; }
not_plain() { ! curl -s -m 3 "http://127.0.0.1:$(port http)/ping"; }

try_store() { # try_store NAME PATH PASSWORD
  # shellcheck disable=SC2046
  check "$1: starts" begin_server $(tls_settings "$2" "$3")
  [ -n "$(port http)" ] || return
  for name in http health 'line protocol'; do check "$1: $name" shows first "$(port "$name")"; done
  check "$1: postgres" shows first "$(port postgres)" -starttls postgres
  check "$1: curl trusts it" status_is 200 --cacert "$scratch/first.crt" -u root:s3cret "https://localhost:$(port http)/exec?query=select+1"
  check "$1: curl, health" status_is 200 --cacert "$scratch/first.crt" "https://localhost:$(port health)/"
}

certificate first
certificate second
openssl pkcs12 -export -in "$scratch/first.crt" -inkey "$scratch/first.key" -passout pass:changeit -out "$scratch/store.p12" 2>/dev/null
openssl pkcs12 -export -legacy -name penstock -in "$scratch/first.crt" -inkey "$scratch/first.key" -passout pass:changeit -out "$scratch/old.p12" 2>/dev/null

try_store PKCS12 "$scratch/store.p12" changeit
check 'no TLS 1.1' no_old_tls
check 'no plain HTTP' not_plain
end_server
if [ -s "$scratch/old.p12" ]; then
  try_store 'PKCS12, old ciphers' "$scratch/old.p12" changeit
  end_server
fi
if command -v keytool >/dev/null; then
  keytool -importkeystore -srckeystore "$scratch/store.p12" -srcstoretype PKCS12 -srcstorepass changeit \
    -destkeystore "$scratch/store.jks" -deststoretype JKS -deststorepass changeit >/dev/null 2>&1
  try_store JKS "$scratch/store.jks" changeit
  end_server
else
  echo 'skipped JKS: keytool is missing'
fi

mkdir "$scratch/folder"
cp "$scratch/first.crt" "$scratch/folder/tls.crt"
cp "$scratch/first.key" "$scratch/folder/tls.key"
try_store PEM "$scratch/folder" ''
cp "$scratch/second.crt" "$scratch/folder/tls.crt"
cp "$scratch/second.key" "$scratch/folder/tls.key"
sleep 4
for name in http health 'line protocol'; do check "renewed: $name" shows second "$(port "$name")"; done
check 'renewed: postgres' shows second "$(port postgres)" -starttls postgres
url="https://localhost:$(port http)"
trusted=(--cacert "$scratch/second.crt")
check 'no credentials: 403' status_is 403 "${trusted[@]}" "$url/exec?query=select+1"
check 'wrong credentials: 403' status_is 403 "${trusted[@]}" -u root:nope "$url/exec?query=select+1"
head -c 3000000 /dev/zero | tr '\0' 'x' >"$scratch/body"
check 'a large body of a stranger: 403' status_is 403 "${trusted[@]}" --data-binary "@$scratch/body" "$url/write"
check 'a page of another site: 403' status_is 403 "${trusted[@]}" -u root:s3cret -H 'Sec-Fetch-Site: cross-site' "$url/exec?query=drop+all+tables"
end_server

strict_refuses() {
  ! node dist/deploy/cli.js start -d "$scratch/strict" --set security.strict=true --set http.net.bind.to=0.0.0.0:0 2>"$scratch/strict.err" &&
    grep -q 'security.strict' "$scratch/strict.err"
}
check 'security.strict refuses exposed servers' timeout 20 bash -c "$(declare -f strict_refuses); scratch=$scratch strict_refuses"
[ "$failures" -eq 0 ]
