#!/usr/bin/env bash
# Checks that the subjects of commits have at most 72 characters: of all commits since the last tag or, without a tag,
# since the commit that added this check.
set -uo pipefail
cd "$(dirname "$0")/.."
longest=72

git rev-parse --git-dir >/dev/null 2>&1 || exit 0
base=$(git describe --tags --abbrev=0 2>/dev/null) ||
  base=$(git log --diff-filter=A --format=%H -1 -- .ci/commit-subjects.sh)
# Not yet committed: there is nothing to judge.
[ -n "$base" ] || exit 0
git log --no-merges --format='%h %s' "$base..HEAD" | awk -v longest="$longest" '
  { subject = substr($0, index($0, " ") + 1) }
  length(subject) > longest { printf "commit %s: the subject has %d characters, at most %d are allowed\n", $1, length(subject), longest; failed = 1 }
  END { exit failed }'
