#!/usr/bin/env bash
# Tests the files that deploy/packages/build.sh makes: the archive runs with its own Node.js from a folder with a space
# in its name, and the .deb and .rpm have what their systemd service needs. `--install` also installs the .deb, which
# needs root, in an overlay file system over this machine's that is removed afterwards.
set -euo pipefail
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
server=
cleanup() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  rm -rf "$scratch"
  # An archive holds programs alone: what other steps run has to be built again.
  node deploy/penstock.js build
}
trap cleanup EXIT

deploy/packages/build.sh -o "$scratch/out"
mkdir "$scratch/a folder"
tar -xzf "$scratch"/out/*.tar.gz -C "$scratch/a folder"
sets=()
for key in http.net.bind.to http.min.net.bind.to line.tcp.net.bind.to pg.net.bind.to; do sets+=(--set "$key=127.0.0.1:0"); done
ln -s "$scratch/a folder"/*/bin/penstock "$scratch/penstock"
env -i HOME="$scratch" PATH=/usr/bin:/bin "$scratch/penstock" start -d "$scratch/root" "${sets[@]}" >"$scratch/output" &
server=$!
for _ in $(seq 300); do
  grep -q Ctrl-C "$scratch/output" && break
  sleep 0.1
done
url=http://$(sed -n 's/^  http  *//p' "$scratch/output")
curl -sf "$url/write" --data-binary 'weather,city=Oslo temperature=3.5'
env -i PATH=/usr/bin:/bin "$scratch/penstock" sql --url "$url" 'SELECT city FROM weather' | grep -q Oslo
kill "$server"
wait "$server"
server=
echo 'the archive runs'

wanted='usr/bin/penstock usr/lib/penstock/bin/node usr/lib/penstock/dist/deploy/cli.js usr/lib/systemd/system/penstock.service
  usr/lib/sysusers.d/penstock.conf usr/lib/tmpfiles.d/penstock.conf etc/penstock/penstock.env'
has_all() {
  local file
  for file in $wanted; do
    grep -qxE "[./]*$file" "$scratch/list" || {
      echo "$1 lacks $file"
      return 1
    }
  done
  echo "$1 has everything"
}
for package in "$scratch"/out/*.deb; do
  [ -e "$package" ] || continue
  dpkg-deb --fsys-tarfile "$package" | tar -tf - >"$scratch/list"
  has_all .deb
done
for package in "$scratch"/out/*.rpm; do
  [ -e "$package" ] || continue
  rpm -qpl "$package" >"$scratch/list"
  has_all .rpm
done

[ "${1:-}" = --install ] || exit 0
cat >"$scratch/install" <<'SCRIPT'
set -e
mount -t tmpfs tmpfs "$1/overlay"
mkdir "$1/overlay/upper" "$1/overlay/work" "$1/overlay/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/overlay/upper,workdir=$1/overlay/work" "$1/overlay/root"
mount --bind "$1/out" "$1/overlay/root/mnt"
mount -t proc proc "$1/overlay/root/proc"
mount --bind /dev "$1/overlay/root/dev"
chroot "$1/overlay/root" sh -ec '
  dpkg -i /mnt/*.deb >/dev/null
  [ "$(stat -c %U:%a /var/lib/penstock)" = penstock:750 ]
  [ "$(stat -c %a /etc/penstock/penstock.env)" = 600 ]
  systemd-analyze verify /usr/lib/systemd/system/penstock.service
  setpriv --reuid penstock --regid penstock --clear-groups penstock check -d /var/lib/penstock 2>&1 | grep "no data"
  dpkg -P penstock >/dev/null
  [ -d /var/lib/penstock ] && [ ! -e /usr/bin/penstock ] && [ ! -e /etc/penstock/penstock.env ]'
SCRIPT
mkdir "$scratch/overlay"
unshare -m bash "$scratch/install" "$scratch"
echo 'the .deb is installed and removed, the data stay'
