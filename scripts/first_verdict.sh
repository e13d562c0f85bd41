#!/bin/sh
# How long it takes from nothing to the first verdict on a PyTorch program: first_verdict.sh WHEEL PROGRAM
#
# A new environment, pip install of torch and numpy, pip install of the wheel, headrace profile of the program. Prints the seconds of
# each, the page, and the sum with and without torch's own installation. PIP_ARGS go to pip. TORCH_ENV names an environment that has torch already:
# a copy of it is not made; a headrace that is installed there is uninstalled, the wheel is installed instead and stays there, and torch's
# installation is printed as not measured.
set -eu
wheel=$(realpath "$1") program=$(realpath "$2")
[ -z "${TORCH_ENV:-}" ] || environment=$(realpath "$TORCH_ENV")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
now() { date +%s.%N; }
spent() { echo "$1 $2" | awk '{ printf "%.1f", $2 - $1 }'; }

start=$(now)
if [ -n "${TORCH_ENV:-}" ]; then
  torch="not measured"
  "$environment/bin/pip" uninstall -q -y headrace > /dev/null 2>&1 || true
else
  python3 -m venv new
  environment=$folder/new
  new/bin/pip install -q --disable-pip-version-check ${PIP_ARGS:-} torch numpy
  torch=$(spent "$start" "$(now)")
fi
installed=$(now)
"$environment/bin/pip" install -q --disable-pip-version-check --no-index "$wheel"
began=$(now)
PATH=$environment/bin:$PATH headrace profile -q -- python "$program"
end=$(now)
echo
echo "install torch $torch s, install headrace $(spent "$installed" "$began") s, record and judge $(spent "$began" "$end") s"
echo "from the wheel to the first verdict: $(spent "$installed" "$end") s"
[ "$torch" = "not measured" ] || echo "from nothing, torch included: $(spent "$start" "$end") s"
