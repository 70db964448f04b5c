#!/usr/bin/env bash
# trino.sh COMMAND...: starts a Trino server of one node without catalogs, runs the command with its address in
# $PENSTOCK_TRINO, and stops it. Catalogs are created by statements. The folder $TRINO_HOME has the server's folder lib
# and its plugin iceberg, and $TRINO_JAVA is a Java that its version runs on.
set -uo pipefail
source "${BASH_SOURCE[0]%/*}/service.sh"

export PENSTOCK_TRINO=http://127.0.0.1:$port
cat >"$data/config.properties" <<END
coordinator=true
node-scheduler.include-coordinator=true
http-server.http.port=$port
discovery.uri=$PENSTOCK_TRINO
catalog.management=dynamic
catalog.store=memory
query.max-memory-per-node=256MB
END
echo 'io.trino=WARN' >"$data/log.properties"
options=(-Xmx1g -XX:+UseSerialGC "-Dconfig=$data/config.properties" "-Dlog.levels-file=$data/log.properties"
  -Dnode.environment=test -Dnode.id=one "-Dnode.data-dir=$data" -Dnode.bind-ip=127.0.0.1 -Dnode.internal-address=127.0.0.1)
# The keys in the environment are not those of its catalogs.
(cd "$TRINO_HOME" && unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY && exec "$TRINO_JAVA" "${options[@]}" -cp 'lib/*' io.trino.server.TrinoServer) >"$data/service.log" 2>&1 &
service=$!
is_ready() { curl -s "$PENSTOCK_TRINO/v1/info" | grep -q '"starting":false'; }
await_service 120 is_ready
"$@"
status=$?
[ "$status" -eq 0 ] || tail -n 20 "$data/service.log" | cut -c 1-400
exit "$status"
