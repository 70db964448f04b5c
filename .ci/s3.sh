#!/usr/bin/env bash
# s3.sh COMMAND...: runs a command beside a real S3 service (versitygw, built from its Go module), with the environment that
# tests of object storage look for. The folder $S3_TOOLS keeps the service from step to step.
set -uo pipefail
tools=${S3_TOOLS:-$(mktemp -d)}
source "${BASH_SOURCE[0]%/*}/service.sh"

if [ ! -x "$tools/versitygw" ]; then
  GOBIN=$tools go install github.com/versity/versitygw/cmd/versitygw@v1.8.0 >"$tools/go.out" 2>&1 || {
    tail -5 "$tools/go.out"
    exit 1
  }
fi
export AWS_ACCESS_KEY_ID=penstock AWS_SECRET_ACCESS_KEY=a/secret+key PENSTOCK_S3_BUCKET=history
mkdir -p "$data/root/$PENSTOCK_S3_BUCKET"
export PENSTOCK_S3=http://127.0.0.1:$port
ROOT_ACCESS_KEY=$AWS_ACCESS_KEY_ID ROOT_SECRET_KEY=$AWS_SECRET_ACCESS_KEY \
  "$tools/versitygw" --port "127.0.0.1:$port" posix "$data/root" >"$data/service.log" 2>&1 &
service=$!
for _ in $(seq 100); do
  curl -s -o /dev/null "$PENSTOCK_S3" && break
  sleep 0.1
done
"$@"
