#!/usr/bin/env bash
# Builds the downloads for installation without npm: for one platform an archive with the server and the Node.js that
# runs it, and for Linux the packages .deb and .rpm with the same files. The npm packages that the lockfile lists come
# from the npm registry.
#
#   deploy/packages/build.sh [-o FOLDER] [-p PLATFORM] [-n NODE] [KIND...]
#
#   FOLDER     where the files go; default: packages/ in the current folder
#   PLATFORM   linux-x64, linux-arm64, darwin-x64 or darwin-arm64; default: this machine's
#   NODE       the binary `node` of that platform, from the archive of nodejs.org; default: the one of this machine
#   KIND       tar, deb, rpm; default: tar, and on Linux those whose tool is there (dpkg-deb, rpmbuild)
#
#   penstock-<version>-<platform>/bin/penstock        starts lib/penstock with bin/node, wherever the folder is
#                                 bin/node
#                                 lib/penstock/       what the package of npm holds, with its dependencies
#
# A .deb or .rpm has lib/penstock and its Node.js in /usr/lib/penstock, the command in /usr/bin, a unit of systemd, its
# user, and /etc/penstock/penstock.env. Removing it keeps /var/lib/penstock.
set -euo pipefail

usage() {
  sed -n '5,10s/^# \{0,1\}//p' "$0" >&2
  exit 2
}

out=packages platform='' node=$(command -v node || true)
while getopts 'o:p:n:' option; do
  case $option in
    o) out=$OPTARG ;;
    p) platform=$OPTARG ;;
    n) node=$OPTARG ;;
    *) usage ;;
  esac
done
shift $((OPTIND - 1))
here=$(node -p '`${process.platform}-${process.arch}`')
platform=${platform:-$here}
os=${platform%-*} cpu=${platform#*-}
case $platform in linux-x64 | linux-arm64 | darwin-x64 | darwin-arm64) ;; *) usage ;; esac
if [ "$platform" != "$here" ] && [ "$node" = "$(command -v node)" ]; then
  echo "for $platform name its Node.js: -n <folder of the unpacked archive>/bin/node" >&2
  exit 2
fi
[ -f "$node" ] || { echo "no such file: $node" >&2; exit 2; }
kinds=("$@")
if [ ${#kinds[@]} -eq 0 ]; then
  kinds=(tar)
  [ "$os" = linux ] && command -v dpkg-deb >/dev/null && kinds+=(deb)
  [ "$os" = linux ] && command -v rpmbuild >/dev/null && kinds+=(rpm)
fi

mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$(dirname "$0")/../.."
version=$(node -p 'require("./package.json").version')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
name=penstock-$version-$platform
tree=$work/$name

node deploy/penstock.js build programs
mkdir -p "$tree/bin" "$tree/lib/penstock"
# `npm pack` decides which files belong to the package.
npm pack --silent --ignore-scripts --pack-destination "$work" >"$work/packed"
tar -xzf "$work/$(tail -1 "$work/packed")" -C "$tree/lib/penstock" --strip-components=1
cp package-lock.json .npmrc "$tree/lib/penstock/"
libc=()
[ "$os" = linux ] && libc=(--libc=glibc)
npm ci --prefix "$tree/lib/penstock" --silent --omit=dev --ignore-scripts --no-audit --no-fund --os="$os" --cpu="$cpu" "${libc[@]}"
rm -f "$tree/lib/penstock/package-lock.json" "$tree/lib/penstock/.npmrc"
install -m 755 "$(realpath "$node")" "$tree/bin/node"
cat >"$tree/bin/penstock" <<'SCRIPT'
#!/bin/sh
# Starts the server and its tools with the Node.js beside this script.
file=$(readlink -f "$0")
exec "${file%/*}/node" "${file%/bin/*}/lib/penstock/deploy/penstock.js" "$@"
SCRIPT
chmod 755 "$tree/bin/penstock"
chmod -R u=rwX,go=rX "$tree"

# Files as they lie on a machine, for both kinds of packages.
system_tree() {
  local root=$1
  mkdir -p "$root"/usr/{bin,lib/systemd/system,lib/sysusers.d,lib/tmpfiles.d,share/doc/penstock} "$root/etc/penstock"
  cp -r "$tree/lib/penstock" "$root/usr/lib/penstock"
  mkdir "$root/usr/lib/penstock/bin"
  cp "$tree/bin/node" "$root/usr/lib/penstock/bin/node"
  printf '#!/bin/sh\nexec /usr/lib/penstock/bin/node /usr/lib/penstock/deploy/penstock.js "$@"\n' >"$root/usr/bin/penstock"
  cp deploy/systemd/penstock.service "$root/usr/lib/systemd/system/"
  cp deploy/systemd/sysusers.conf "$root/usr/lib/sysusers.d/penstock.conf"
  cp deploy/systemd/tmpfiles.conf "$root/usr/lib/tmpfiles.d/penstock.conf"
  cp deploy/systemd/penstock.env "$root/etc/penstock/"
  cp deploy/systemd/sysctl.conf LICENSE CHANGELOG.md dist/THIRD-PARTY-LICENSES.txt "$root/usr/share/doc/penstock/"
  chmod -R u=rwX,go=rX "$root"
  chmod 755 "$root/usr/bin/penstock" "$root/usr/lib/penstock/bin/node"
  chmod 700 "$root/etc/penstock"
  chmod 600 "$root/etc/penstock/penstock.env"
}

make_tar() {
  tar -czf "$out/$name.tar.gz" --owner=0 --group=0 --sort=name -C "$work" "$name"
  echo "$out/$name.tar.gz"
}

make_deb() {
  local root=$work/deb architecture=$cpu
  [ "$cpu" = x64 ] && architecture=amd64
  system_tree "$root"
  mkdir "$root/DEBIAN"
  sed -e "s/@VERSION@/$version/" -e "s/@ARCHITECTURE@/$architecture/" \
    -e "s/@SIZE@/$(du -sk --exclude=DEBIAN "$root" | cut -f1)/" deploy/packages/control >"$root/DEBIAN/control"
  echo /etc/penstock/penstock.env >"$root/DEBIAN/conffiles"
  for script in postinst prerm postrm; do install -m 755 "deploy/packages/$script" "$root/DEBIAN/$script"; done
  dpkg-deb --root-owner-group -Zxz --build "$root" "$out/penstock_${version}_$architecture.deb" >/dev/null
  echo "$out/penstock_${version}_$architecture.deb"
}

make_rpm() {
  local root=$work/rpm architecture=x86_64
  [ "$cpu" = arm64 ] && architecture=aarch64
  system_tree "$root"
  rpmbuild -bb --quiet --target "$architecture" --define "_topdir $work/rpmbuild" --define "_rpmdir $work/rpms" \
    --define "tree $root" --define "package_version $version" deploy/packages/penstock.spec
  cp "$work/rpms/$architecture/"*.rpm "$out/"
  ls "$out/penstock-$version"*."$architecture.rpm"
}

for kind in "${kinds[@]}"; do
  case $kind in
    tar) make_tar ;;
    deb | rpm)
      [ "$os" = linux ] || { echo "a .$kind is for Linux" >&2; exit 2; }
      "make_$kind"
      ;;
    *) usage ;;
  esac
done
