#!/usr/bin/env bash
# iceberg-catalog.sh COMMAND...: starts the REST catalog of Apache Iceberg, runs the command with the catalog's address
# in $PENSTOCK_CATALOG, and stops the catalog. The files of its tables are in the bucket of the S3 service if s3.sh has
# started one, else in a temporary folder. The folder $CATALOG_JARS has the Java libraries, which
# test/interop/iceberg-catalog.xml lists.
set -uo pipefail
source "${BASH_SOURCE[0]%/*}/service.sh"

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
await_service 30 curl -s -f -o /dev/null "$PENSTOCK_CATALOG/v1/config"
"$@"
status=$?
[ "$status" -eq 0 ] || tail -n 20 "$data/service.log"
exit "$status"
