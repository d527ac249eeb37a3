/** Several servers on one database: who leads which shard, since when. One server alone has no such screen. */
import { signal } from "@preact/signals";
import { isMissing, request } from "../api/client.ts";
import { clock } from "../live/store.ts";
import { Badge, Panel, Screen } from "../ui/bits.tsx";
import { useReading } from "../ui/reading.ts";
import { Since } from "../ui/ticking.tsx";

interface Cluster {
  readonly servers: readonly Readonly<Record<string, unknown>>[];
  readonly shards: readonly Readonly<Record<string, unknown>>[];
}

/** null: not asked yet. False: this server knows nothing of others. */
export const hasCluster = signal<boolean | null>(null);

export async function lookForCluster(): Promise<void> {
  try {
    await request("GET", "/v1/cluster");
    hasCluster.value = true;
  } catch (error) {
    hasCluster.value = !isMissing(error) && false;
  }
}

export function ClusterScreen() {
  const read = useReading("cluster", async () => (await request("GET", "/v1/cluster")) as Cluster, clock);
  const { servers = [], shards = [] } = read.value ?? {};
  return (
    <Screen title="Cluster">
      {read.error === null ? null : <p class="error">{read.error}</p>}
      <div class="columns">
        <Panel title={`${servers.length} servers`}>
          <Rows rows={servers} />
        </Panel>
        <Panel title={`${shards.length} shards`}>
          <Rows rows={shards} />
        </Panel>
      </div>
    </Screen>
  );
}

/** Every field that the server shows, in its order. */
function Rows({ rows }: { readonly rows: readonly Readonly<Record<string, unknown>>[] }) {
  const names = Object.keys(rows[0] ?? {});
  return (
    <div class="table-box">
      <table>
        <thead>
          <tr>
            {names.map((name) => (
              <th key={name} scope="col">
                {name.replaceAll("_", " ")}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, at) => (
            <tr key={String(row["server_id"] ?? row["shard"] ?? at)}>
              {names.map((name) => (
                <td key={name}>
                  <Cell name={name} value={row[name]} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Cell({ name, value }: { readonly name: string; readonly value: unknown }) {
  if (typeof value === "string" && (name.endsWith("_at") || name === "since")) return <Since at={value} />;
  if (name === "state")
    return <Badge tone={/lead|ready|serving|up/i.test(String(value)) ? "working" : "idle"}>{String(value)}</Badge>;
  return (
    <>
      {value === null || value === undefined ? "–" : typeof value === "object" ? JSON.stringify(value) : String(value)}
    </>
  );
}
