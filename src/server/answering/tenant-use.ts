/**
 * S4: what a tenant uses of the edge at the moment, counted against its quotas. The kernel counts records; connections,
 * subscriptions and held answers are not in its records, and end with their sockets.
 */
import type { Engine } from "../../engine/engine.ts";
import { snakeCase } from "../../kernel/contract/field.ts";
import { quotasDefault, type TenantQuotas } from "../../kernel/contract/records.ts";
import { tenantsIn } from "../../kernel/views.ts";
import { type Answer, errorAnswer } from "../../protocol/answers/answer.ts";

export type EdgeQuota = "connectionsMax" | "subscriptionsMax" | "heldMax";

/** One of something that is limited. Leaving twice is leaving once. */
export interface Place {
  leave(): void;
}

type Use = Record<EdgeQuota, number>;

export class TenantUses {
  private readonly engine: Engine;
  /** Of those that use anything. */
  private readonly uses = new Map<string, Use>();
  /** Bytes that wait for a tenant's readers; the sockets know. */
  unreadOf: (tenant: string) => number = () => 0;

  constructor(engine: Engine) {
    this.engine = engine;
  }

  /** The place, or why there is none. */
  enter(tenant: string, quota: EdgeQuota): Place | Answer {
    const use = this.uses.get(tenant) ?? { connectionsMax: 0, subscriptionsMax: 0, heldMax: 0 };
    const used = use[quota];
    const limit = this.quotasOf(tenant)[quota];
    if (used >= limit) return quotaAnswer(snakeCase(quota), used, limit);
    use[quota]++;
    this.uses.set(tenant, use);
    let isIn = true;
    return {
      leave: () => {
        if (!isIn) return;
        isIn = false;
        use[quota]--;
        if (use.connectionsMax + use.subscriptionsMax + use.heldMax === 0) this.uses.delete(tenant);
      },
    };
  }

  used(tenant: string, quota: EdgeQuota): number {
    return this.uses.get(tenant)?.[quota] ?? 0;
  }

  isSuspended(tenant: string): boolean {
    return this.engine.peek(tenantsIn).get(tenant)?.record.suspended === true;
  }

  quotasOf(tenant: string): TenantQuotas {
    return this.engine.peek(tenantsIn).get(tenant)?.record.quotas ?? quotasDefault;
  }
}

export function isPlace(found: Place | Answer): found is Place {
  return "leave" in found;
}

/** In the words of the kernel's own refusal. */
export function quotaAnswer(quota: string, used: number, limit: number, detail?: string): Answer {
  const words = `The tenant's quota ${quota} is used up; end some, or ask its operator to raise it.`;
  return errorAnswer("quota_exceeded", detail ?? words, { quota, used, limit });
}
