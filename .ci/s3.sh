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
mkdir -p "$data/root/$PENSTOCK_S3_BUCKET" "$data/iam"
export PENSTOCK_S3=http://127.0.0.1:$port
ROOT_ACCESS_KEY=$AWS_ACCESS_KEY_ID ROOT_SECRET_KEY=$AWS_SECRET_ACCESS_KEY \
  "$tools/versitygw" --port "127.0.0.1:$port" --iam-dir "$data/iam" posix "$data/root" >"$data/service.log" 2>&1 &
service=$!
await_service 10 curl -s -o /dev/null "$PENSTOCK_S3"
# A second pair of keys, which can only read.
export PENSTOCK_S3_READER=reader PENSTOCK_S3_READER_SECRET=another+secret/key
"$tools/versitygw" admin --access "$AWS_ACCESS_KEY_ID" --secret "$AWS_SECRET_ACCESS_KEY" --endpoint-url "$PENSTOCK_S3" \
  create-user --access "$PENSTOCK_S3_READER" --secret "$PENSTOCK_S3_READER_SECRET" --role user >"$data/user.out" 2>&1 || cat "$data/user.out"
arn=arn:aws:s3:::$PENSTOCK_S3_BUCKET
allow() {
  printf '{"Effect":"Allow","Principal":["%s"],"Action":["%s"],"Resource":["%s"]}' "$PENSTOCK_S3_READER" "$1" "$2"
}
policy="{\"Statement\":[$(allow s3:GetObject "$arn/*"),$(allow s3:ListBucket "$arn")]}"
curl -sS -f -X PUT --user "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" --aws-sigv4 aws:amz:us-east-1:s3 -d "$policy" \
  -H 'Content-Type: application/json' -H "x-amz-content-sha256: $(printf %s "$policy" | sha256sum | cut -d ' ' -f 1)" \
  "$PENSTOCK_S3/$PENSTOCK_S3_BUCKET?policy="
"$@"
