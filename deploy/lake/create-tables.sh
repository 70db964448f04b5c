# `sh create-tables.sh host..`: creates the table of compose.yaml in each server.
for host in "$@"; do
  PENSTOCK_URL=http://$host:9000 node deploy/penstock.js sql \
    'CREATE TABLE IF NOT EXISTS readings (device SYMBOL, site SYMBOL, temperature DOUBLE, pressure DOUBLE, running BOOLEAN,
      kafka_topic SYMBOL, kafka_partition LONG, kafka_offset LONG, timestamp TIMESTAMP) TIMESTAMP(timestamp) PARTITION BY DAY LAKE ON' || exit 1
done
