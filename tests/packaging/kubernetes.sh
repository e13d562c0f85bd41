#!/bin/sh
# Holds the Kubernetes manifests against the schemas of the API, unknown fields included: kubernetes.sh BUILD. kubernetes-validate, which has
# the schemas, comes from PyPI into BUILD/kubernetes, once. Ends with 77 where it cannot be had.
set -eu
build=$1
validate=$build/kubernetes/bin/kubernetes-validate
if [ ! -x "$validate" ]; then
  rm -rf "$build/kubernetes"
  { python3 -m venv "$build/kubernetes" && "$build/kubernetes/bin/pip" install -q --disable-pip-version-check kubernetes-validate; } > "$build/kubernetes.log" 2>&1 ||
    { echo "no kubernetes-validate: $(tail -n 1 "$build/kubernetes.log")"; rm -rf "$build/kubernetes"; exit 77; }
fi
cd "$(dirname "$0")/../../packaging/kubernetes"
for manifest in *.yaml; do "$validate" --strict "$manifest"; done
# It refuses what the schema does not have.
if sed 's/hostPID:/hostPid:/' daemonset.yaml | "$validate" --strict /dev/stdin > /dev/null 2>&1; then
  echo "kubernetes-validate took a manifest with an unknown field"
  exit 1
fi
