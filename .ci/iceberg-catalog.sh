#!/usr/bin/env bash
# iceberg-catalog.sh COMMAND...: runs a command beside the REST catalog of Apache Iceberg, whose address is then in
# $PENSTOCK_CATALOG. Beside a service of s3.sh its metadata are in the bucket there, else in a folder. The folder
# $CATALOG_JARS has its libraries: test/interop/iceberg-catalog.xml lists them.
set -uo pipefail
data=$(mktemp -d)
service=
cleanup() {
  [ -n "$service" ] && kill "$service" 2>/dev/null
  rm -rf "$data"
}
trap cleanup EXIT

port=$((20000 + RANDOM % 20000))
export PENSTOCK_CATALOG=http://127.0.0.1:$port
export CATALOG_CATALOG__IMPL=org.apache.iceberg.jdbc.JdbcCatalog CATALOG_URI="jdbc:sqlite:$data/catalog.db" \
  CATALOG_JDBC_SCHEMA__VERSION=V1 CATALOG_CLIENTS=1 CATALOG_REST_PORT=$port
if [ -n "${PENSTOCK_S3:-}" ]; then
  export AWS_REGION=us-east-1 CATALOG_WAREHOUSE="s3://$PENSTOCK_S3_BUCKET/catalog" \
    CATALOG_IO__IMPL=org.apache.iceberg.aws.s3.S3FileIO CATALOG_S3_ENDPOINT=$PENSTOCK_S3 \
    CATALOG_S3_PATH__STYLE__ACCESS=true
else
  export CATALOG_WAREHOUSE="file://$data/warehouse"
fi
java -Xmx256m -cp "$CATALOG_JARS/*" org.apache.iceberg.rest.RESTCatalogServer >"$data/service.log" 2>&1 &
service=$!
for _ in $(seq 300); do
  curl -s -f -o /dev/null "$PENSTOCK_CATALOG/v1/config" && break
  sleep 0.1
done
"$@"
status=$?
[ "$status" -eq 0 ] || tail -n 20 "$data/service.log"
exit "$status"
