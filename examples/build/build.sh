#!/bin/sh
# A real build under a lease: its output is this build's alone, and nobody changes the sources meanwhile. A second build,
# here or in another checkout, waits for its turn; `leasehold run -n -E 0` would leave it to the first.
set -eu
cd "$(dirname "$0")"
NODE="${NODE:-node}"
exec "$NODE" ../../bin/leasehold.cjs run -w 60s -x out/ -s src/ -- sh -c '
  echo "build $$ begins under fence $LEASEHOLD_FENCE"
  "$0" ../../node_modules/typescript/bin/tsc -p tsconfig.json --outDir "$1"
  echo "build $$ ends"
' "$NODE" "${OUT:-out}"
