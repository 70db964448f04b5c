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
