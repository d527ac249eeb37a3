/** The servers that share one database: who leads which shard, since when, and in which epoch. */
import type { OperationAnswers } from "../../../src/sdk/wire.ts";
import { call } from "../api/client.ts";
import { isOperator } from "../api/session.ts";
import { clock } from "../live/store.ts";
import { resignLeader } from "../ui/actions.ts";
import { Badge, Panel, Screen } from "../ui/bits.tsx";
import { ActionButton } from "../ui/confirm.tsx";
import { useReading } from "../ui/reading.ts";
import { Table } from "../ui/table.tsx";
import { Since } from "../ui/ticking.tsx";
import { duration } from "../ui/words.ts";

type Cluster = OperationAnswers["get_cluster"];
type Server = Cluster["servers"][number];
type Shard = Cluster["shards"][number];

export function ClusterScreen() {
  const read = useReading("cluster", () => call("get_cluster", {}), clock);
  return (
    <Screen title="Cluster">
      {read.error === null ? null : <p class="error">{read.error}</p>}
      {read.value === null ? null : <View cluster={read.value} />}
    </Screen>
  );
}

function View({ cluster }: { readonly cluster: Cluster }) {
  const { servers, shards } = cluster;
  return (
    <>
      <p class="lead">
        <Summary cluster={cluster} />
      </p>
      <div class="columns">
        <Panel
          title={servers.length === 1 ? "1 server" : `${servers.length} servers`}
          actions={isOperator.value && shards.length === 1 ? <Resign cluster={cluster} leader={shards[0]} /> : null}
        >
          <Table
            head={["Server", "State", "Version", "Up for", ...(shards.length > 1 ? [""] : [])]}
            rows={servers.map((server) => [
              <ServerName key="name" id={server.server_id} url={server.url} isOwn={isOwn(server, cluster)} />,
              <State key="state" server={server} shards={shards} />,
              server.version,
              <Since key="up" at={server.started_at} />,
              ...(shards.length > 1 ? [<ServerActions key="actions" cluster={cluster} server={server} />] : []),
            ])}
          />
        </Panel>
        <Panel title={shards.length === 1 ? "1 shard" : `${shards.length} shards`}>
          <Table
            head={["Shard", "Leader", "Epoch", "Leads for", "Lease left"]}
            rows={shards.map((shard) => [
              String(shard.shard),
              shard.server_id === null ? (
                <Badge key="leader" tone="lost">
                  nobody
                </Badge>
              ) : (
                <ServerName key="leader" id={shard.server_id} url={shard.url} />
              ),
              String(shard.epoch),
              shard.since === null ? "–" : <Since key="since" at={shard.since} />,
              leaseLeft(shard),
            ])}
          />
        </Panel>
      </div>
    </>
  );
}

/** The answer to "is somebody leading?", in a sentence. */
function Summary({ cluster: { store, servers, shards } }: { readonly cluster: Cluster }) {
  const orphans = shards.filter((shard) => shard.server_id === null);
  if (orphans.length > 0)
    return (
      <>
        Nobody leads {orphans.length === 1 ? `shard ${orphans[0]?.shard}` : `${orphans.length} shards`}: requests wait
        until a server is elected.
      </>
    );
  if (store !== "postgres")
    return <>This server has its data to itself. On PostgreSQL several servers can share a database.</>;
  if (shards.length > 1) {
    const able = servers.filter(canLead).length;
    if (able < 2) return <>Nobody could take over if the server failed: start another one on the same database.</>;
    return (
      <>
        {able} servers share {shards.length} shards; if one fails, the others take over what it leads.
      </>
    );
  }
  const spare = servers.filter((server) => canLead(server) && !isLeader(server, shards)).length;
  if (spare === 0) return <>Nobody could take over if the leader failed: start another server on the same database.</>;
  return <>{spare === 1 ? "1 server" : `${spare} servers`} could take over if the leader failed.</>;
}

/** Of several shards, those of one server. */
function ServerActions({ cluster, server }: { readonly cluster: Cluster; readonly server: Server }) {
  const leader = cluster.shards.find((shard) => shard.server_id === server.server_id);
  return isOperator.value ? <Resign cluster={cluster} leader={leader} /> : null;
}

/** The request reaches the leader by way of any server. */
function Resign({ cluster, leader }: { readonly cluster: Cluster; readonly leader: Shard | undefined }) {
  const { store, servers } = cluster;
  const hasSuccessor = servers.some((server) => canLead(server) && server.server_id !== leader?.server_id);
  if (store !== "postgres" || leader === undefined || leader.server_id === null || !hasSuccessor) return null;
  return <ActionButton label="Resign" action={resignLeader(leader.url ?? leader.server_id, leader.server_id)} />;
}

function ServerName(props: { readonly id: string; readonly url: string | null; readonly isOwn?: boolean }) {
  return (
    <>
      <span class="mono" title={props.id}>
        {props.url ?? props.id}
      </span>{" "}
      {props.isOwn === true ? <Badge tone="idle">serves this page</Badge> : null}
    </>
  );
}

function State({ server, shards }: { readonly server: Server; readonly shards: readonly Shard[] }) {
  if (!server.alive)
    return (
      <Badge tone="lost">
        silent for <Since at={server.seen_at} />
      </Badge>
    );
  if (isLeader(server, shards)) return <Badge tone="working">{ledWords(server, shards)}</Badge>;
  return <Badge tone="idle">{server.may_lead ? "stands by" : "only passes requests on"}</Badge>;
}

/** As it was read: the leader renews it all the time, so that it does not count down. */
function leaseLeft({ server_id: leader, lease_left_ms: leftMs }: Shard): string {
  if (leader === null) return "–";
  return leftMs === null ? "does not run out" : duration(leftMs);
}

function ledWords({ server_id: id }: Server, shards: readonly Shard[]): string {
  const led = shards.filter((shard) => shard.server_id === id).length;
  return shards.length === 1 ? "leads" : led === 1 ? "leads 1 shard" : `leads ${led} shards`;
}

function isLeader({ server_id: id }: Server, shards: readonly Shard[]): boolean {
  return shards.some((shard) => shard.server_id === id);
}

function canLead({ alive, may_lead: mayLead }: Server): boolean {
  return alive && mayLead;
}

const loopback = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/;

/** By its address: the leader answers for all of them. Behind a proxy none of several can be told. */
function isOwn({ url }: Server, { servers }: Cluster): boolean {
  if (servers.length === 1) return true;
  if (url === null || !URL.canParse(url)) return false;
  const { hostname, port } = new URL(url);
  const isSameHost = hostname === location.hostname || (loopback.test(hostname) && loopback.test(location.hostname));
  return isSameHost && port === location.port;
}
