# Sourced by scripts that run a command beside a service: $data is a temporary folder, and $port a port for the service.
# When the script ends, it ends the process $service and removes the folder.
data=$(mktemp -d)
service=
cleanup() {
  [ -n "$service" ] && kill "$service" 2>/dev/null
  rm -rf "$data"
}
trap cleanup EXIT
port=$((20000 + RANDOM % 20000))

# await_service SECONDS COMMAND...: waits until the command succeeds; in vain if the service ends or the time is over.
await_service() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@"; do
    kill -0 "$service" 2>/dev/null && [ "$SECONDS" -lt "$deadline" ] || return 1
    sleep 0.1
  done
}
