/**
 * S4: history that is bounded for all tenants together is shared by them. Half of what may be kept are the youngest rows,
 * of any tenant. The other half is divided: each tenant keeps what it has up to a level, so that a tenant that ends very
 * many leases pushes out its own history and not that of others. A tenant that is alone has all of it.
 */

/** What a tenant has of what is older than the youngest half. */
export interface Share {
  readonly tenant: string;
  readonly rows: number;
  /** About what one row takes; 1 where only their number counts. */
  readonly rowBytes: number;
}

/** How many rows are kept whatever their tenant, and how many are shared. */
export function halves(keep: number): { readonly youngest: number; readonly shared: number } {
  const shared = Math.floor(keep / 2);
  return { youngest: keep - shared, shared };
}

/** Of each tenant that has more than its share, how many of its oldest rows go. */
export function excessOf(
  shares: readonly Share[],
  rowsMax: number,
  bytesMax: number = Number.POSITIVE_INFINITY,
): ReadonlyMap<string, number> {
  const rowLevel = levelOf(
    shares.map(({ rows }) => rows),
    rowsMax,
  );
  const byteLevel = levelOf(
    shares.map(({ rows, rowBytes }) => rows * rowBytes),
    bytesMax,
  );
  const excess = new Map<string, number>();
  for (const { tenant, rows, rowBytes } of shares) {
    const kept = Math.min(rows, Math.floor(rowLevel), Math.floor(byteLevel / rowBytes));
    if (kept < rows) excess.set(tenant, rows - kept);
  }
  return excess;
}

/** The level up to which each may keep what it has, so that all together keep `most`. Infinite where there is room for all. */
function levelOf(amounts: readonly number[], most: number): number {
  let [left, sharers] = [most, amounts.length];
  for (const amount of amounts.toSorted((a, b) => a - b)) {
    if (amount > left / sharers) return left / sharers;
    left -= amount;
    sharers--;
  }
  return Number.POSITIVE_INFINITY;
}

interface Historic {
  readonly tenant: string;
  readonly id: string;
  readonly at: number;
}

/** Of rows in memory, in the order of their commits: takes out what is too old, and of the tenants with the most rows what is too much (S4). */
export function takeOld<R extends Historic>(rows: R[], before: number, keep: number): readonly R[] {
  const young = rows.findIndex(({ at }) => at >= before);
  const gone = rows.splice(0, young < 0 ? rows.length : young);
  const { youngest, shared } = halves(keep);
  const older = Map.groupBy(rows.slice(0, Math.max(0, rows.length - youngest)), ({ tenant }) => tenant);
  const shares = Array.from(older, ([tenant, { length }]) => ({ tenant, rows: length, rowBytes: 1 }));
  const excess = new Set<R>();
  for (const [tenant, count] of excessOf(shares, shared)) {
    const oldest = (older.get(tenant) ?? []).toSorted((a, b) => (a.id < b.id ? -1 : 1)).slice(0, count);
    for (const row of oldest) excess.add(row);
  }
  let kept = 0;
  for (const row of rows) {
    if (excess.has(row)) gone.push(row);
    else rows[kept++] = row;
  }
  rows.length = kept;
  return gone;
}
