#!/usr/bin/env bash
# nessie.sh COMMAND...: starts Nessie, with its data in memory, runs the command with the address of its Iceberg REST catalog
# in $PENSTOCK_CATALOG and the prefix of its paths in $PENSTOCK_CATALOG_PREFIX, and stops it. The metadata of its tables are
# in the bucket of the S3 service that s3.sh has started. $NESSIE_JAR is Nessie, and $NESSIE_JAVA is a Java that it runs on.
set -uo pipefail
source "${BASH_SOURCE[0]%/*}/service.sh"

export PENSTOCK_CATALOG=http://127.0.0.1:$port/iceberg PENSTOCK_CATALOG_PREFIX=main%7Cmain/
s3=nessie.catalog.service.s3.default-options
options=(-Xmx400m -Dquarkus.http.host=127.0.0.1 "-Dquarkus.http.port=$port" -Dquarkus.management.host=127.0.0.1
  -Dquarkus.management.port=0 -Dnessie.version.store.type=IN_MEMORY -Dnessie.catalog.default-warehouse=main
  "-Dnessie.catalog.warehouses.main.location=s3://$PENSTOCK_S3_BUCKET/nessie" "-D$s3.endpoint=$PENSTOCK_S3"
  "-D$s3.path-style-access=true" "-D$s3.region=us-east-1" "-D$s3.access-key=urn:nessie-secret:quarkus:keys"
  "-Dkeys.name=$AWS_ACCESS_KEY_ID" "-Dkeys.secret=$AWS_SECRET_ACCESS_KEY" -Dnessie.catalog.error-handling.throttled-retry-after=PT1S)
(cd "$data" && exec "$NESSIE_JAVA" "${options[@]}" -jar "$NESSIE_JAR") >"$data/service.log" 2>&1 &
service=$!
await_service 60 curl -s -f -o /dev/null "$PENSTOCK_CATALOG/v1/config"
"$@"
status=$?
[ "$status" -eq 0 ] || grep -v '^\s*at ' "$data/service.log" | tail -n 20 | cut -c 1-400
exit "$status"
