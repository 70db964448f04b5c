#!/usr/bin/env bash
# `.ci/helm.sh FOLDER`: the Helm chart passes `helm lint`, deploy/kubernetes/penstock.yaml is what it renders, and with
# default and with other values every manifest has only the fields that the API of Kubernetes knows. Helm and the types of
# the API are built from their Go modules, in FOLDER, unless `helm` is there. kubeconform, whose schemas come from the
# network, checks too where it is installed.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=$1
export PATH=$tools:$PATH
command -v helm >/dev/null || GOBIN=$tools go install helm.sh/helm/v3/cmd/helm@v3.16.4
(cd test/interop/kubernetes && go build -o "$tools/manifests" .)

helm lint --strict deploy/helm
cp deploy/kubernetes/penstock.yaml "$tools/before"
node deploy/kubernetes/render.js
cmp deploy/kubernetes/penstock.yaml "$tools/before"
manifests <deploy/kubernetes/penstock.yaml

render() { helm template x deploy/helm --kube-version 1.30.0 "$@"; }
monitoring=monitoring.serviceMonitor.enabled=true,monitoring.rules.enabled=true,monitoring.dashboard.enabled=true
render --set "$monitoring,tls.existingSecret=tls,auth.password=secret,persistence.storageClass=fast" | tee "$tools/more.yaml" | manifests
render --set auth.enabled=false,persistence.enabled=false,networkPolicy.enabled=false,podDisruptionBudget.enabled=false | manifests
render --set 'settings.query\.timeout=60s' | grep -q '  PENSTOCK_QUERY_TIMEOUT: "60s"'
if render --set auth.password=a,auth.existingSecret=b >/dev/null 2>&1; then
  echo 'two sources of the password are accepted'
  exit 1
fi
if command -v kubeconform >/dev/null; then
  kubeconform -strict -summary -ignore-missing-schemas deploy/kubernetes/penstock.yaml "$tools/more.yaml"
fi
