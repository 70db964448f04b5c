#!/usr/bin/env bash
# minio.sh COMMAND...: runs a command beside MinIO, an S3 service with a security token service, with the environment
# that tests of object storage look for. $MINIO is its program, and $MINIO_PYTHON a Python with the package minio. The
# user $AWS_ACCESS_KEY_ID may read and write every bucket, as may $PENSTOCK_S3_READER, who requests temporary keys.
set -uo pipefail
source "${BASH_SOURCE[0]%/*}/service.sh"

export PENSTOCK_S3=http://127.0.0.1:$port PENSTOCK_S3_BUCKET=history
export AWS_ACCESS_KEY_ID=penstock AWS_SECRET_ACCESS_KEY=a/secret+key
export PENSTOCK_S3_READER=reader PENSTOCK_S3_READER_SECRET=another+secret/key
export MINIO_ROOT_USER=administrator MINIO_ROOT_PASSWORD=administrator-secret
HOME=$data "$MINIO" server --quiet --address "127.0.0.1:$port" --console-address 127.0.0.1:0 "$data/root" >"$data/service.log" 2>&1 &
service=$!
await_service 30 curl -s -f -o /dev/null "$PENSTOCK_S3/minio/health/live"
"$MINIO_PYTHON" - <<'END' || { tail -n 20 "$data/service.log"; exit 1; }
import os
from minio import Minio, MinioAdmin
from minio.credentials import StaticProvider

root = StaticProvider(os.environ["MINIO_ROOT_USER"], os.environ["MINIO_ROOT_PASSWORD"])
place = {"endpoint": os.environ["PENSTOCK_S3"].removeprefix("http://"), "credentials": root, "secure": False}
Minio(**place).make_bucket(bucket_name=os.environ["PENSTOCK_S3_BUCKET"])
admin = MinioAdmin(**place)
for user, secret in [("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), ("PENSTOCK_S3_READER", "PENSTOCK_S3_READER_SECRET")]:
    admin.user_add(os.environ[user], os.environ[secret])
    admin.attach_policy(["readwrite"], user=os.environ[user])
END
unset MINIO_ROOT_USER MINIO_ROOT_PASSWORD
"$@"
status=$?
[ "$status" -eq 0 ] || tail -n 20 "$data/service.log"
exit "$status"
