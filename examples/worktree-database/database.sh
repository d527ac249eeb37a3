#!/bin/sh
# A database for each lease: the cell calls it with bind, teardown, probe or reset, and with the lease in its environment.
# With DATABASE_URL (postgres://…) it is a database there, made by psql; otherwise a SQLite file in DATABASES.
set -eu

# DB:/shop/3 of lease lse_01…: what one holder left is never what the next one gets.
slot=$(printf %s "${LEASEHOLD_RESOURCE#DB:/}" | tr -c 'a-z0-9\n' _)

if [ -n "${DATABASE_URL:-}" ]; then
  name="worktree_$slot"
  sql() { psql --no-psqlrc --quiet --tuples-only --no-align --set ON_ERROR_STOP=1 --dbname "$DATABASE_URL" --command "$1"; }
  # FORCE ends the connections of a holder that is late: its lease has ended.
  drop() { sql "DROP DATABASE IF EXISTS $name WITH (FORCE)"; }
  create() {
    sql "CREATE DATABASE $name TEMPLATE ${TEMPLATE:-template0}"
    echo "${DATABASE_URL%/*}/$name"
  }
  is_clean() { [ -z "$(sql "SELECT 1 FROM pg_database WHERE datname = '$name'")" ]; }
else
  file="${DATABASES:-${TMPDIR:-/tmp}/leasehold-databases}/$slot.sqlite"
  drop() { rm -f "$file" "$file-wal" "$file-shm" "$file-journal"; }
  create() {
    mkdir -p "$(dirname "$file")"
    # An empty file is an empty SQLite database.
    if [ -n "${TEMPLATE:-}" ]; then cp "$TEMPLATE" "$file"; else : >"$file"; fi
    echo "$file"
  }
  is_clean() { [ ! -e "$file" ]; }
fi

case "$1" in
bind) drop && create ;;
teardown | reset) drop ;;
probe) is_clean ;;
*) echo "unknown event $1" >&2 && exit 2 ;;
esac
