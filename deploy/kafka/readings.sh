# Simulates ten machines that send their readings as JSON ten times a second, with the time in seconds. Now and then one
# sends an invalid record. `sh readings.sh [count]` ends after that number of records.
awk -v count="${1:-0}" 'BEGIN {
  srand()
  split("berlin paris rome oslo", sites, " ")
  for (n = 0; count == 0 || n < count; n++) {
    device = int(rand() * 10)
    "date +%s" | getline now
    close("date +%s")
    temperature = 20 + device + 5 * sin(n / 600)
    if (n % 997 == 996) printf "{\"device\":\"machine-%d\",\"temperature\":\"broken\",\"ts\":%s}\n", device, now
    else printf "{\"device\":\"machine-%d\",\"site\":\"%s\",\"temperature\":%.2f,\"pressure\":%.1f,\"running\":%s,\"ts\":%s}\n", \
      device, sites[device % 4 + 1], temperature, 1000 + rand() * 20, rand() < 0.95 ? "true" : "false", now
    fflush()
    if (count == 0) system("sleep 0.1")
  }
}'
