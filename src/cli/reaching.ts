/** Whether a server answers at an address, without a key and without the SDK. */

const answerMs = 2_000;

/** Its health check answers as Leasehold's does. */
export async function isLeasehold(url: string): Promise<boolean> {
  try {
    const response = await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(answerMs) });
    const body = (await response.json()) as { readonly status?: unknown } | null;
    return response.status === 200 && body?.status === "ok";
  } catch {
    return false;
  }
}
